"""What writers have said, and whether a file agrees with it."""

from __future__ import annotations

from dataclasses import dataclass, field

States = dict[str, int]
"""The version of each item by its id; 0 stands for none."""


@dataclass(slots=True)
class Ledger:
    """The acknowledged state of a file.

    Attributes:
        done: What acknowledged operations have left.
        open: What operations that were begun and not acknowledged would do, by operation.
        complaints: What writers have found wrong themselves.
    """

    done: States = field(default_factory=dict)
    open: dict[str, States] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def read(self, output: str) -> int:
        """Take in what a writer said before it died; returns how many acknowledgements."""
        acknowledged = 0
        for line in output.split("\n")[:-1]:  # the last line may have been cut off
            mark, operation, *changes = line.split(" ")
            if mark == "!":
                self.complaints.append(line)
            elif mark == "+":
                pairs = (change.split("=") for change in changes if change)
                self.open[operation] = {key: int(version) for key, version in pairs}
            else:
                acknowledged += 1
                self.done.update(self.open.pop(operation))
        return acknowledged

    def settle(self, found: States) -> list[str]:
        """Compare with what a file holds; it is the new truth for what was left open.

        Returns:
            What is wrong: acknowledged work that is lost, and operations that were half done.
        """
        problems, self.complaints = self.complaints, []
        for operation, changes in self.open.items():
            if all(found.get(key, 0) == version for key, version in changes.items()):
                self.done.update(changes)
            elif any(found.get(key, 0) != self.done.get(key, 0) for key in changes):
                problems.append(f"half done: {operation} {changes}")
        self.open.clear()
        for key in {*self.done, *found}:
            wanted, seen = self.done.get(key, 0), found.get(key, 0)
            if wanted != seen:
                problems.append(f"{key} is at version {seen} but was acknowledged at {wanted}")
        self.done = {key: version for key, version in found.items() if version}
        return problems
