"""The system prompt of a session: ours, changed by what its caller asked for."""

from trimtab.contracts.run import Run
from trimtab.prompts.assemble import PromptFacts, read_sections
from trimtab.prompts.customize import change_sections, join
from trimtab.runtime.build import Place
from trimtab.runtime.options import Client, SessionOptions
from trimtab.runtime.surroundings import list_entries, system_name
from trimtab.version import __version__


async def build_prompt(run: Run, place: Place, options: SessionOptions, client: Client) -> str:
    """The system prompt for a run, as things are now."""
    wanted = options.system_message
    if wanted.mode == "replace":
        return wanted.content
    around, custom = place.surroundings, place.customizations
    facts = PromptFacts(
        version=__version__,
        cwd=around.cwd,
        system=system_name(),
        listing=list_entries(around.cwd),
        tools=frozenset(run.tools),
        mode=run.mode,
        git_root=around.git_root,
        branch=around.branch,
        instructions=custom.prompt_instructions() if custom else (),
        skills=custom.prompt_skills() if custom and "skill" in run.tools else "",
        agent=custom.agent_prompt() if custom else "",
    )
    sections: dict[str, str] = {}
    for name, text in read_sections(facts):
        sections[name] = f"{sections[name]}\n\n{text}" if name in sections else text
    if wanted.mode == "customize":
        sections = change_sections(sections, wanted.sections)
        callbacks = [
            name for name, change in wanted.sections.items() if change.action == "transform"
        ]
        if callbacks and client.transform is not None:
            changed = await client.transform({name: sections.get(name, "") for name in callbacks})
            sections = change_sections({**sections, **changed}, {})
    return join(sections, wanted.content)
