;;; The files of src/, without their type, in the order in which they are compiled and loaded.
;;; boot.lisp and consort.asd both read this list.
("package"
 "sbcl" "sbcl/fingerprint" "sbcl/check" "sbcl/copy" "sbcl/symbols" "sbcl/reload" "sbcl/profile" "sbcl/debug" "sbcl/probes"
 "json" "settings" "programs" "wire" "timers" "streams" "pristine" "backtrace" "stack-frames" "blanks" "evaluation" "workers" "locks" "dispatch" "input" "debug/stops" "user-package"
 "ops/status" "ops/interrupt" "ops/eval" "ops/load-file" "ops/load-system" "ops/fingerprint" "ops/symbol-kinds" "ops/names"
 "profile/stacks" "profile/sampler" "ops/profile"
 "testing/frameworks" "testing/select" "ops/run-tests" "ops/tools"
 "copy" "confine/system-calls" "confine/landlock" "confine/reading" "confine/filter" "confine/privileges" "confine" "second-process"
 "check/state" "check/source" "check/positions" "check/message" "check/kinds" "check/narrow" "check/observe" "check/undefined"
 "check/stale" "check/reading" "check/engine" "fitting" "check/report" "check/system" "check/calls" "check/parked" "ops/check"
 "symbols/names" "symbols/kinds" "symbols/complete" "symbols/describe" "symbols/definitions" "symbols/classes" "symbols/references" "ops/symbols" "ops/name-index"
 "reload/notes" "reload/packages" "reload/snapshot" "reload/changes" "reload/undo" "reload/digest" "reload/compiled-files" "reload/compile"
 "reload/report" "reload/sources" "ops/reload" "ops/eval-in-copy" "ops/try-code"
 "expand/environment" "expand/walk" "expand/text" "expand/plain" "expand/compare" "ops/macroexpand" "ops/find-name"
 "ops/browse" "ops/threads" "ops/reading"
 "debug/refusal" "debug/references" "debug/parts" "debug/set" "debug/shape" "debug/frames" "debug/places" "debug/probes" "debug/units" "debug/moments" "debug/steps" "debug/breakpoints" "debug/step-into" "debug/coverage" "debug/hits"
 "ops/inspect" "ops/debug" "ops/breakpoints")
