"""`SessionContext`: everything an open session needs that does not depend on its agent."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.checkout.checkout import Checkout
from trimtab.config.paths import Home
from trimtab.contracts.customization import Skill
from trimtab.customize.customizations import Customizations
from trimtab.policy.rule_files import FileRules
from trimtab.session.folder import SessionFolder
from trimtab.session.session import Session
from trimtab.session.todos import Todos
from trimtab.workspace.local import LocalWorkspace

if TYPE_CHECKING:
    from trimtab.contracts.sql import SqlDatabase
    from trimtab.policy.folder_trust import FolderTrust
    from trimtab.workspace.sandbox.policy import SandboxPolicy


class SessionContext(msgspec.Struct, frozen=True, kw_only=True):
    """A session with its folder on disk, its workspace, and its trust, rules and sandbox."""

    session: Session
    folder: SessionFolder
    workspace: LocalWorkspace
    checkout: Checkout
    home: Home | None = None
    customizations: Customizations | None = None
    resumed: bool = False
    trust: "FolderTrust | None" = None
    rules: FileRules = FileRules()
    sandbox: "SandboxPolicy | None" = None
    env: Mapping[str, str] = {}
    client_database: "SqlDatabase | None" = None

    @property
    def todos(self) -> Todos:
        """The to-do list that the agents of the session keep."""
        return Todos(self.folder.database, self.client_database)

    @property
    def skills(self) -> dict[str, Skill]:
        """The skills the model may load."""
        return self.customizations.offered_skills if self.customizations else {}
