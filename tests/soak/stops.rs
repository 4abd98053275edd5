//! A person with a debugger and an agent at the same stops, at random: both look, run code, and
//! leave the stops, also at one moment; the image, the debugger or the agent is killed meanwhile.
//!
//! The run checks that every request is answered. When two clients leave one stop at once, exactly
//! one succeeds, and the other is told so. A debugger that connects later finds the stops of one
//! that was killed. After each round nothing is stopped, and the next answers are good.

use consort_tests::debugger::Debugger;
use consort_tests::installation::Installation;
use consort_tests::patience::{found, until};
use consort_tests::wire::Rpc;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const FILE: &str = "(defpackage :shop (:use :cl)) (in-package :shop)
(declaim (optimize (debug 2)))
(defun price (item)
  (restart-case (error \"no price of ~A\" item)
    (use-other (value) :report \"Use another.\" (list :used value))
    (plainly () :report \"Plainly.\" :plain)))
(defun total (items) (let ((all (list :total))) (dolist (item items (reverse all)) (push (price item) all))))
";

/// The programs that stop; each ends, whatever restart is taken.
const PROGRAMS: [&str; 6] = [
    "(shop::price 1)",
    "(shop::total (list 1 2))",
    "(progn (break \"here\") :after)",
    "(handler-bind ((error (lambda (condition) (declare (ignore condition)) (break \"in a handler\")))) (shop::price 1))",
    "(progn (with-simple-restart (plainly \"Plainly.\") (+ 1 (car (vector 1)))) :after)",
    "(unwind-protect (shop::price 1) (restart-case (error \"in a cleanup form\") (plainly () nil)))",
];
/// One that stops only when it is paused.
const LOOPS: &str = "(with-simple-restart (plainly \"Plainly.\") (loop (sleep 0.001)))";

/// Code in a frame: values, an error, output, a short wait, another package.
const IN_FRAME: [&str; 5] = [
    "(+ 1 2)",
    "(error \"in a frame\")",
    "(progn (princ :printed) 1)",
    "(sleep 0.02)",
    "(list *package* (values 1 2))",
];

/// The number of polls for a stop before a program that loops is paused again.
const TRIES: u32 = 20;
/// The maximum number of stops of a program before it is aborted.
const LOOKS: usize = 6;

struct Soak {
    world: Installation,
    random: fastrand::Rng,
    debugger: Debugger,
    agent: Rpc,
    /// The request of the person's evaluation.
    evaluation: u64,
    races: u64,
    faults: u64,
}

/// A stop, as agents are told of it, and its thread.
struct Stop {
    number: u64,
    thread: Value,
    restarts: Vec<Value>,
}

/// A request of one of the two.
enum Asked {
    Person(u64),
    Agent(u64),
}

/// Runs rounds until `enough`, given the number of rounds so far, says so.
pub(crate) fn run(seed: u64, enough: impl Fn(u64) -> bool) {
    let world = Installation::new();
    world.configure("[approval]\neval = \"allow\"\ndebug = \"allow\"\nmodify-running-code = \"allow\"\n");
    let file = world.write("shop.lisp", FILE);
    let (debugger, agent) = (world.dap(), world.mcp());
    let random = fastrand::Rng::with_seed(seed);
    let mut soak = Soak { world, random, debugger, agent, evaluation: 0, races: 0, faults: 0 };
    let load = format!("(progn (load {:?}) nil)", file.display().to_string());
    soak.load(&load);
    let mut rounds = 0;
    while !enough(rounds) {
        soak.round(&load);
        rounds += 1;
    }
    println!("seed {seed}: {rounds} rounds, {} at one moment, {} faults", soak.races, soak.faults);
    assert!(soak.races > 0 && soak.faults > 0, "a run without either is too short");
    soak.debugger.leave();
    drop(soak.agent);
    soak.world.finish();
}

impl Soak {
    fn load(&mut self, load: &str) {
        let loaded = self.debugger.ask("consort/evaluate", json!({"code": load}));
        assert_eq!(loaded["status"], "ok", "{loaded}");
    }

    /// One evaluation of the person, from its begin to its end.
    fn round(&mut self, load: &str) {
        let loops = self.random.u8(..8) == 0;
        let program = if loops { LOOPS } else { PROGRAMS[self.random.usize(..PROGRAMS.len())] };
        self.debugger.events.clear();
        self.evaluation = self.debugger.begin("consort/evaluate", json!({"code": program, "stops": true}));
        let mut looked = 0;
        while let Some(stop) = self.next_stop(loops) {
            looked += 1;
            if looked > LOOKS {
                self.abort(&stop);
                continue;
            }
            for _ in 0..self.random.u8(..4) {
                self.look(&stop);
            }
            match self.random.u8(..20) {
                0..8 => self.race(&stop),
                8..12 => self.leave_as_person(&stop),
                12..15 => self.leave_as_agent(&stop),
                15 => self.cancel(),
                16 => self.kill_image(load),
                17 => self.replace_debugger(),
                18 => self.replace_agent(&stop),
                _ => self.abort(&stop),
            }
        }
        self.good_answers();
    }

    /// Pauses the evaluation, if it is known to run.
    fn pause(&mut self) {
        let threads = self.debugger.ask("threads", json!({}))["threads"].clone();
        let runs = |thread: &&Value| thread["name"].as_str().unwrap_or_default().contains("evaluation");
        if let Some(thread) = threads.as_array().and_then(|threads| threads.iter().find(runs)) {
            // It may have ended just now.
            let _ = self.debugger.try_ask("pause", json!({"threadId": thread["id"]}));
        }
    }

    /// Waits until the evaluation is stopped, and returns its innermost stop; `None`: it has ended.
    /// A program that loops is paused, and paused again when somebody resumed it.
    fn next_stop(&mut self, loops: bool) -> Option<Stop> {
        let evaluation = self.evaluation;
        let mut tries = 0_u32;
        found("a stop, or the end of the evaluation", || {
            if loops && tries.is_multiple_of(TRIES) {
                self.pause();
            }
            tries += 1;
            // Messages are taken in with each answer.
            let threads = self.debugger.ask("threads", json!({}));
            if self.debugger.is_answered(evaluation) {
                return Some(None);
            }
            let stops = self.agent_call(json!({"action": "stops"}))["structuredContent"]["stops"].clone();
            let stop = stops.as_array()?.iter().rfind(|stop| stop["state"] == "waiting")?.clone();
            // The debugger's own list must agree.
            let is_stopped = |thread: &Value| thread["name"].as_str().unwrap_or_default().ends_with("(stopped)");
            let thread = threads["threads"].as_array()?.iter().find(|thread| is_stopped(thread))?["id"].clone();
            let restarts =
                self.debugger.try_ask("consort/restarts", json!({"threadId": thread})).ok()?["restarts"].clone();
            let number = stop["stop"].as_u64()?;
            (restarts[0]["stop"] == number)
                .then(|| Some(Stop { number, thread, restarts: restarts.as_array().cloned().unwrap_or_default() }))
        })
    }

    fn agent_call(&mut self, arguments: Value) -> Value {
        self.agent.request("tools/call", json!({"name": "debug", "arguments": arguments}))
    }

    fn begin_as_agent(&mut self, stop: &Stop, action: &str, more: &Value) -> Asked {
        let mut arguments = json!({"action": action, "stop": stop.number});
        for (key, value) in more.as_object().into_iter().flatten() {
            arguments[key] = value.clone();
        }
        Asked::Agent(self.agent.begin("tools/call", json!({"name": "debug", "arguments": arguments})))
    }

    /// Waits for an answer. `Err`: the reason why nothing was done.
    fn answer(&mut self, asked: &Asked) -> Result<(), String> {
        match asked {
            Asked::Person(request) => self.debugger.wait(*request).map(drop),
            Asked::Agent(request) => {
                let answer = self.agent.wait(*request);
                let result = &answer["result"];
                let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                if result["isError"] == false { Ok(()) } else { Err(format!("{text}{}", answer["error"])) }
            }
        }
    }

    /// Has one of the two, or both at once, look at a stop or run code there.
    fn look(&mut self, stop: &Stop) {
        let asked = match self.random.u8(..3) {
            0 => vec![self.look_as_person(stop)],
            1 => vec![self.look_as_agent(stop)],
            _ => vec![self.look_as_person(stop), self.look_as_agent(stop)],
        };
        for asked in asked {
            // What is refused (code that fails) is answered too.
            let _ = self.answer(&asked);
        }
    }

    fn look_as_person(&mut self, stop: &Stop) -> Asked {
        let in_thread = json!({"threadId": stop.thread});
        let code = IN_FRAME[self.random.usize(..IN_FRAME.len())];
        let (command, arguments) = match self.random.u8(..6) {
            0 => ("exceptionInfo", in_thread),
            1 => ("stackTrace", in_thread),
            // Beside the stop, which it does not wait for.
            2 => ("consort/evaluate", json!({"code": "(+ 1 2)"})),
            3 => return Asked::Person(self.begin_in_frame(stop, "scopes", json!({}))),
            4 => return Asked::Person(self.begin_in_frame(stop, "evaluate", json!({"expression": code}))),
            _ => ("evaluate", json!({"expression": code})),
        };
        Asked::Person(self.debugger.begin(command, arguments))
    }

    /// Sends a request about a random frame.
    fn begin_in_frame(&mut self, stop: &Stop, command: &str, mut arguments: Value) -> u64 {
        let frames = self.debugger.try_ask("stackTrace", json!({"threadId": stop.thread}));
        let frames = frames.unwrap_or_default()["stackFrames"].as_array().cloned().unwrap_or_default();
        let frame =
            if frames.is_empty() { Value::Null } else { frames[self.random.usize(..frames.len())]["id"].clone() };
        arguments["frameId"] = frame;
        self.debugger.begin(command, arguments)
    }

    fn look_as_agent(&mut self, stop: &Stop) -> Asked {
        let frame = self.random.u8(..3);
        match self.random.u8(..4) {
            0 => self.begin_as_agent(stop, "frames", &json!({})),
            1 => self.begin_as_agent(stop, "locals", &json!({"frame": frame})),
            2 => {
                let code = IN_FRAME[self.random.usize(..IN_FRAME.len())];
                self.begin_as_agent(stop, "eval", &json!({"frame": frame, "code": code}))
            }
            _ => {
                let arguments = json!({"code": "(+ 1 2)"});
                Asked::Agent(self.agent.begin("tools/call", json!({"name": "evaluate-lisp", "arguments": arguments})))
            }
        }
    }

    /// A restart that ends the stop: its index, name and arguments.
    fn restart(&mut self, stop: &Stop) -> Value {
        let number = self.random.usize(..stop.restarts.len());
        let mut restart = stop.restarts[number].clone();
        if restart["arguments"] == true {
            restart["arguments"] = json!(["(list 1 2)"]);
        } else {
            restart["arguments"] = json!([]);
        }
        restart["threadId"] = stop.thread.clone();
        restart
    }

    fn restart_as_agent(&mut self, stop: &Stop) -> Asked {
        let restart = self.restart(stop);
        let code = restart["arguments"][0].clone();
        let mut more = json!({"restart": restart["index"]});
        if code.is_string() {
            more["code"] = code;
        }
        self.begin_as_agent(stop, "restart", &more)
    }

    /// Both leave one stop at the same time.
    fn race(&mut self, stop: &Stop) {
        self.races += 1;
        let person_first = self.random.bool();
        let restart = self.restart(stop);
        let aborts = self.random.u8(..3) == 0;
        let mut asked = Vec::new();
        for person in [person_first, !person_first] {
            asked.push(match person {
                true => Asked::Person(self.debugger.begin("consort/invokeRestart", restart.clone())),
                false if aborts => self.begin_as_agent(stop, "abort", &json!({})),
                false => self.restart_as_agent(stop),
            });
        }
        let answers: Vec<Result<(), String>> = asked.iter().map(|asked| self.answer(asked)).collect();
        let refused: Vec<&String> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
        assert_eq!(refused.len(), 1, "of two who leave stop {} one does: {answers:?}", stop.number);
        let is_told = ["was left", "no stop", "not stopped", "any more"].iter().any(|part| refused[0].contains(part));
        assert!(is_told, "the other is told that the stop was left: {refused:?}");
    }

    fn leave_as_person(&mut self, stop: &Stop) {
        let request = match self.random.u8(..4) {
            0 => self.debugger.begin("continue", json!({"threadId": stop.thread})),
            1 => self.begin_in_frame(stop, "restartFrame", json!({})),
            2 => self.begin_in_frame(stop, "consort/return", json!({"code": "(list :returned)"})),
            _ => {
                let restart = self.restart(stop);
                self.debugger.begin("consort/invokeRestart", restart)
            }
        };
        // A frame may have nothing kept for it, and a stop no CONTINUE; then it stays.
        let _ = self.debugger.wait(request);
    }

    fn leave_as_agent(&mut self, stop: &Stop) {
        let frame = self.random.u8(..2);
        let asked = match self.random.u8(..4) {
            0 => self.begin_as_agent(stop, "continue", &json!({})),
            1 => self.begin_as_agent(stop, "restart-frame", &json!({"frame": frame})),
            2 => self.begin_as_agent(stop, "return", &json!({"frame": frame, "code": "(list :returned)"})),
            _ => self.restart_as_agent(stop),
        };
        let _ = self.answer(&asked); // as above
    }

    fn abort(&mut self, stop: &Stop) {
        let asked = if self.random.bool() {
            Asked::Person(self.debugger.begin("terminateThreads", json!({"threadIds": [stop.thread]})))
        } else {
            self.begin_as_agent(stop, "abort", &json!({}))
        };
        self.answer(&asked).unwrap_or_else(|why| panic!("an abort: {why}"));
    }

    /// The person cancels the evaluation, perhaps while the agent runs code in a frame.
    fn cancel(&mut self) {
        self.debugger.ask("cancel", json!({"requestId": self.evaluation}));
        let answer = self.debugger.wait(self.evaluation);
        let answer = answer.unwrap_or_else(|why| panic!("the evaluation that was cancelled: {why}"));
        assert_eq!(answer["status"], "interrupted", "{answer}");
        self.evaluation = self.debugger.begin("threads", json!({}));
    }

    // Faults.

    fn kill_image(&mut self, load: &str) {
        self.faults += 1;
        let pid = self.world.status()["image"]["pid"].as_i64().expect("the image");
        let pid = Pid::from_raw(i32::try_from(pid).expect("a process")).expect("a process");
        kill_process(pid, Signal::KILL).expect("a signal");
        // The evaluation is answered with the reason.
        let answer = self.debugger.wait(self.evaluation);
        assert!(answer.as_ref().is_err_and(|why| !why.is_empty()), "{answer:?}");
        until("another image", || {
            let image = self.world.status()["image"].clone();
            image["state"] == "ready" && image["pid"].as_i64() != Some(pid.as_raw_nonzero().get().into())
        });
        self.load(load);
        self.evaluation = self.debugger.begin("threads", json!({}));
    }

    /// Kills the debugger, and starts another, which finds the stop and aborts it.
    fn replace_debugger(&mut self) {
        self.faults += 1;
        self.debugger = self.world.dap();
        let stopped = self.debugger.event("stopped", |_| true);
        self.debugger.ask("terminateThreads", json!({"threadIds": [stopped["threadId"]]}));
        let thread = stopped["threadId"].clone();
        until("the end of the evaluation", || {
            let threads = self.debugger.ask("threads", json!({}))["threads"].clone();
            let own = threads.as_array().and_then(|all| all.iter().find(|one| one["id"] == thread)).cloned();
            // A cleanup form of it may stop again.
            if own.as_ref().is_some_and(|own| own["name"].as_str().unwrap_or_default().ends_with("(stopped)")) {
                let _ = self.debugger.try_ask("terminateThreads", json!({"threadIds": [thread]}));
            }
            own.is_none()
        });
        self.evaluation = self.debugger.begin("threads", json!({}));
    }

    /// Kills the agent while it runs code at the stop, and starts another.
    fn replace_agent(&mut self, stop: &Stop) {
        self.faults += 1;
        self.begin_as_agent(stop, "eval", &json!({"code": "(loop (sleep 0.001))"}));
        self.agent = self.world.mcp();
        // The code ends with its agent, and the stop stays.
        until("a stop that waits", || {
            let stops = self.agent_call(json!({"action": "stops"}))["structuredContent"]["stops"].clone();
            stops
                .as_array()
                .is_some_and(|stops| stops.iter().any(|one| one["stop"] == stop.number && one["state"] == "waiting"))
        });
    }

    /// Nothing is stopped, and both get good answers.
    fn good_answers(&mut self) {
        let stops = self.agent_call(json!({"action": "stops"}))["structuredContent"]["stops"].clone();
        assert_eq!(stops, json!([]), "nothing is stopped after a round");
        let answer = self.debugger.ask("consort/evaluate", json!({"code": "(+ 1 2)"}));
        assert_eq!(answer["values"][0]["value"], "3", "{answer}");
        let answer =
            self.agent.request("tools/call", json!({"name": "evaluate-lisp", "arguments": {"code": "(+ 1 2)"}}));
        assert_eq!(answer["structuredContent"]["values"][0], "3", "{answer}");
    }
}
