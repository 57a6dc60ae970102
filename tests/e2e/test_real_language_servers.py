"""Real language servers, fetched by `make foreign`: basedpyright and TypeScript's."""

from typing import Any

import pytest

from clikit import Cli, Outcome, serving
from programkit import FOREIGN

PYTHON = {
    "shop.py": "def price(item: str) -> int:\n    return len(item)\n\n\ntotal = price('tea')\n",
    "main.py": "from shop import price\n\nprint(price('milk'))\n",
    "pyproject.toml": "[project]\nname = 'x'\nversion = '1'\n",
}
SCRIPT = {
    "shop.ts": "export function price(item: string): number {\n  return item.length;\n}\n",
    "main.ts": "import { price } from './shop';\n\nconsole.log(price('milk'));\n",
    "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "commonjs"}}\n',
}


def lsp(action: str, **args: Any) -> dict[str, Any]:
    return {"name": "lsp", "arguments": {"action": action, **args}}


async def ask(cli: Cli, folder: str, calls: list[dict[str, Any]]) -> Outcome:
    cli.env["PATH"] = f"{FOREIGN / folder}:{cli.env['PATH']}"
    async with serving([*({"tools": [call]} for call in calls), {"text": "done"}]) as server:
        return await cli.use(server).ask("go", "--trust-folder")


def results(outcome: Outcome) -> list[str]:
    done = outcome.of("tool.execution_complete")
    assert all(data["success"] for data in done), done
    return [data["result"]["content"] for data in done]


@pytest.mark.foreign("basedpyright")
async def test_basedpyright_answers_renames_and_sees_what_an_edit_broke(cli: Cli) -> None:
    for name, text in PYTHON.items():
        (cli.cwd / name).write_text(text)
    broken = {"path": "shop.py", "old_str": "return len(item)", "new_str": "return item"}
    found = results(
        await ask(
            cli,
            "basedpyright/bin",
            [
                lsp("definition", path="main.py", line=3, symbol="price"),
                lsp("references", path="shop.py", symbol="price"),
                lsp("hover", path="main.py", line=3, symbol="price"),
                lsp("symbols", path="shop.py"),
                lsp("callers", path="shop.py", symbol="price"),
                lsp("rename", path="shop.py", symbol="price", new_name="cost"),
                {"name": "edit", "arguments": broken},
            ],
        )
    )
    assert found[0] == "shop.py:1: def price(item: str) -> int:"
    assert "main.py:3: print(price('milk'))" in found[1]
    assert "item: str" in found[2]
    assert "function price" in found[3]
    assert "main.py" in found[4]
    assert (cli.cwd / "main.py").read_text() == PYTHON["main.py"].replace("price", "cost")
    assert "New diagnostics since this change" in found[6]
    assert '"str" is not assignable to' in found[6]


@pytest.mark.foreign("typescript-language-server")
async def test_typescripts_server_answers_and_renames(cli: Cli) -> None:
    for name, text in SCRIPT.items():
        (cli.cwd / name).write_text(text)
    broken = {"path": "shop.ts", "old_str": "return item.length", "new_str": "return item"}
    found = results(
        await ask(
            cli,
            "typescript-language-server/node_modules/.bin",
            [
                lsp("references", path="shop.ts", symbol="price"),
                lsp("hover", path="main.ts", line=3, symbol="price"),
                lsp("rename", path="shop.ts", symbol="price", new_name="cost"),
                {"name": "edit", "arguments": broken},
            ],
        )
    )
    assert "main.ts:3: console.log(price('milk'));" in found[0]
    assert "item: string" in found[1]
    assert (cli.cwd / "main.ts").read_text() == SCRIPT["main.ts"].replace("price", "cost")
    assert "Type 'string' is not assignable to type 'number'" in found[3]
