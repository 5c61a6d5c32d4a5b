"""The help of every command says what was written, what stands in brackets included."""

import pytest
import typer
from rich.text import Text

from synthmap.cli import app


def commands(command, words=()):
    """Each command below one, itself first: its words and what typer made of it."""
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*words, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.fixture
def help_of(synthmap, monkeypatch):
    """Return the help of a command, on a terminal so wide that no line is broken."""
    monkeypatch.setenv("COLUMNS", "2000")

    def read(words):
        code, out, err = synthmap(*words, "--help")
        assert (code, err) == (0, "")
        return one_line(out)

    return read


def one_line(text):
    return " ".join(Text.from_ansi(text).plain.split())


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "synthmap")
def test_help_is_shown_as_it_was_written(words, help_of):
    command = COMMANDS[words]
    below = [one.help.split("\n\n")[0] for one in getattr(command, "commands", {}).values()]
    written = [command.help, *(one.help for one in command.params), *below]
    shown = help_of(words)
    assert [one for one in written if one_line(one) not in shown] == []


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "synthmap")
def test_no_sentence_of_help_is_broken_where_its_docstring_is(words):
    """Typer joins the lines of the first paragraph only."""
    assert [one for one in (COMMANDS[words].help or "").split("\n\n")[1:] if "\n" in one.strip()] == []


def test_without_rich_nothing_is_escaped(help_of, monkeypatch):
    monkeypatch.setattr(app, "rich_markup_mode", None)
    shown = help_of(["fit-decay"])
    assert "a decay for [prior], fitted" in shown
    assert "prior.release or [prior.table]." in shown


def test_what_a_default_is_stands_in_brackets(help_of):
    assert "a decay for [prior], fitted" in help_of([])
    assert "dataset [nobody]." in help_of(["release"])
    assert "[all]" in help_of(["ledger", "show"])
