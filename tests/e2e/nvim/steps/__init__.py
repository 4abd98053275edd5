"""The steps of person.py, one file a subject."""


def step(function):
    """Marks a function as a step."""
    function.is_step = True
    return function


def steps_of(subject):
    """The steps of a module, in the order of their definitions."""
    return [one for one in vars(subject).values() if getattr(one, "is_step", False)]
