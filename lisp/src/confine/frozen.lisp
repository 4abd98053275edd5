;;;; The filter of a frozen failure (debug/frozen.lisp), which runs no code of the user's: a copy's
;;;; filter that also allows fork, signals to the processes it makes, and further filters. A process
;;;; that it forks narrows this to the filter of an ordinary copy before code of the user runs.

(in-package :consort)

#+linux
(progn

(defun frozen-rulings ()
  "The rules that only the filter of a frozen failure has. With Landlock from version 6 on, its
  signals reach only the processes that it forked."
  (list (cons (number-here '(kill 62 129)) (allow))
        (cons (number-here '(tkill 200 130)) (allow))
        (cons (number-here '(tgkill 234 131)) (allow))
        (cons (number-here '(prlimit64 302 261)) (only-values 0 0))
        (cons (number-here *clone*) (append (only-whole-value 0 +signal-of-end+ 0) (allow)))
        (cons (number-here *prctl*) (prctl-ruling))))

(defun confine-calls-of-frozen (landlock)
  "Installs the filter of a frozen failure. True when it is in force."
  (and (seccomp-p)
       (install-filter (filter-program (sb-posix:getpid) landlock (frozen-rulings)))))

) ; #+linux

#-linux
(progn
  (defun confine-calls-of-frozen (landlock) "There are no filters here." (declare (ignore landlock)) nil))
