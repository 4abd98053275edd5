"""Runs the checks of contract.py with one client, each on connections of its own, and counts."""

import asyncio
import os
import re
import sys
import traceback

import contract_symbols  # noqa: F401 (adds its checks to CHECKS, as the next ones do)
import macroexpand_form  # noqa: F401
import hot_reload  # noqa: F401 - its checks join those of the contract
import working_agent  # noqa: F401
import sentences  # noqa: F401
from contract import CHECKS, PATIENCE


async def run(label, agent_class, more=()):
    chosen = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    passed = failed = 0
    for check in [*more, *CHECKS]:
        if not chosen.search(check.__name__):
            continue
        agent = agent_class(os.environ["CONSORT_BIN"], os.environ["CONSORT_WORKSPACE"])
        try:
            # Not `wait_for`, which runs the check in a task of its own: the SDKs' contexts must be
            # left in the task that entered them.
            async with agent, asyncio.timeout(5 * PATIENCE):
                await check(agent)
            passed += 1
            print(f"ok      {label} {check.__name__}", flush=True)
        except BaseException as error:  # also cancellations and exception groups, which a failing client raises
            failed += 1
            print(f"FAILED  {label} {check.__name__}", flush=True)
            traceback.print_exception(error, limit=-3)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main(label, agent_class, more=()):
    sys.exit(asyncio.run(run(label, agent_class, more)))
