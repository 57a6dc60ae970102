"""Request and reply formats of model services, for client and server. No I/O."""

from trimtab.contracts.provider import ServedRequest, ServerWire, StreamWriter, Wire


def new_wire(name: str, *, limit_field: str | None = None) -> Wire:
    """Return a wire for one conversation. `limit_field` is a service's name of the output limit."""
    if name == "openai-responses":
        from trimtab.providers.wires.openai_responses import OpenAIResponses

        return OpenAIResponses()
    if name == "anthropic-messages":
        from trimtab.providers.wires.anthropic_messages import AnthropicMessages

        return AnthropicMessages()
    from trimtab.providers.wires.openai_chat import OpenAIChat

    assert name == "openai-chat", name
    return OpenAIChat(limit_field=limit_field or "max_tokens")


def new_server_wire(name: str) -> ServerWire:
    """Return the server side of a wire."""
    if name == "openai-responses":
        from trimtab.providers.wires.openai_responses_server import OpenAIResponsesServer

        return OpenAIResponsesServer()
    if name == "anthropic-messages":
        from trimtab.providers.wires.anthropic_messages_server import AnthropicMessagesServer

        return AnthropicMessagesServer()
    from trimtab.providers.wires.openai_chat_server import OpenAIChatServer

    assert name == "openai-chat", name
    return OpenAIChatServer()


def new_writer(name: str, request: ServedRequest) -> StreamWriter:
    """Return the writer of a streamed answer to a request in a wire's format."""
    freeform = frozenset(spec.name for spec in request.tools if spec.format is not None)
    if name == "openai-responses":
        from trimtab.providers.wires.openai_responses_server import namespaced_names
        from trimtab.providers.wires.openai_responses_writer import ResponsesWriter

        return ResponsesWriter(request.model, freeform, namespaced_names(request.body))
    if name == "anthropic-messages":
        from trimtab.providers.wires.anthropic_messages_writer import MessagesWriter

        return MessagesWriter(request.model, freeform)
    from trimtab.providers.wires.openai_chat_writer import ChatWriter

    assert name == "openai-chat", name
    options = request.body.get("stream_options")
    usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return ChatWriter(request.model, freeform, with_usage=usage)
