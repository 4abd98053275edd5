"""Colours and messages: the plugin on a light background; a message that is wider than the screen."""

from session import OLD

from . import step
from .approval import ask, to_the_question


@step
def it_is_readable_on_a_light_background(person):
    see = person.screen
    see.command("set background=light")
    see.ground = "light"
    person.edit("scratch.lisp")
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("⇒ " + OLD)
    person.go("(total '(:tea :coffee))")
    see.type("\\ee")
    see.see("✗")
    see.keep("light-inline")
    see.type("\\ev")
    see.see(" Error ")
    see.keep("light-backtrace")
    see.type("q")
    person.edit("shop.lisp")
    person.go("with-discount (10")
    see.type("\\mm")
    see.see(" Macroexpansion ")
    see.keep("light-expansion")
    see.type("q")
    answer = ask(person)
    see.keep("light-agent-asks")
    to_the_question(person)
    see.type("d")
    assert person.agent.result(answer).isError
    see.command("Consort status")
    see.see(" Consort ", "SBCL", "Claude Code 2.1 (agent)", "(editor)")
    see.keep("light-status")
    see.type("q")
    see.command("Consort log")
    see.see("What ran", "Claude Code 2.1", "(defun price (item)")
    see.keep("light-log")
    see.type("q")
    see.ground = "dark"
    see.command("set background=dark")


@step
def a_message_that_does_not_fit_wants_no_key_and_is_whole_in_messages(person):
    see = person.screen
    see.command("messages clear")
    see.command("lua require('consort.client').say(('It does not fit. '):rep(20) .. 'At all')")
    see.see("It does not fit.", "messages has all", without=["Press ENTER"])
    messages = person.expression("execute('messages')")
    assert messages.rstrip().endswith("At all"), messages
    see.command("lua for i = 1, 3 do require('consort.client').say('message ' .. i) end")
    see.see("Consort: message 3", without=["Press ENTER"])


@step
def the_help_and_the_health_report_are_found(person):
    see = person.screen
    person.edit("shop.lisp")
    see.command("help consort-keys")
    see.see("consort.txt", "3. KEYS")
    see.press("C-w")
    see.type("c")
    see.see("(in-package :shop)", without=["3. KEYS"])
    see.command("checkhealth consort")
    see.see("Consort is usable here.", "found no problem", "the language server is enabled")
    see.keep("health")
    see.type("q")
    see.see("(in-package :shop)", without=["found no problem"])
