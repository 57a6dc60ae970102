import os

from trimtab.contracts.hooks import Program
from trimtab.workspace.fed_program import FedProgram


async def test_the_exit_code_of_a_program_that_closed_its_output_first_is_kept() -> None:
    script = "exec >&- 2>&-; sleep 0.0$((RANDOM % 10)); exit 3"
    program = Program(
        argv=("bash", "-c", script), cwd="/", env=os.environ, input=b"", seconds=10.0, limit=100
    )
    codes = [(await FedProgram(program).finish()).exit_code for _ in range(40)]
    assert codes == [3] * 40
