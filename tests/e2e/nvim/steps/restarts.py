"""Restarts: an image that is killed, and an editor that is started again."""

import os
import signal

from session import OLD

from . import step


@step
def an_image_that_is_killed_comes_back(person):
    see = person.screen
    person.edit("shop.lisp")
    before = person.status()["image"]["pid"]
    os.kill(before, signal.SIGKILL)
    person.another_image(before)
    person.edit("scratch.lisp")
    person.go("(total '(:tea :cake))")
    see.type("\\ee")
    see.see("⇒ " + OLD)  # the system was loaded again
    see.keep("recovered")


@step
def neovim_is_started_again_and_the_image_is_as_it_was(person):
    see = person.screen
    person.edit("shop.lisp")
    see.command("Consort eval (defparameter shop::*seen* 42)")
    see.see("⇒ *SEEN*", " Value ")
    see.type("q")
    image = person.status()["image"]["image"]
    see.command("qa!")
    see.until("its end", lambda: not see.running())
    person.open("shop.lisp")
    see.command("Consort eval shop::*seen*")
    see.see("⇒ 42")
    assert person.status()["image"]["image"] == image
    see.type("q")
