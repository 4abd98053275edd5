;;;; `check` with `chain`: a check that leaves a chain of processes, which then answers edits of the
;;;; text (docs/wire.md, "A chain").

(in-package :consort)

(defun chain-possible-p (params)
  "Returns true if the check that PARAMS request may leave a chain: it is of a file, it is confined,
  and the system and SBCL have the features that a chain needs."
  (and (chain-internals-p)
       (confined-p params)
       (not (equal (field params "mode") "form"))
       (seccomp-p)
       (plusp (landlock-abi))))

(defun chain-of-params (params check report)
  "Makes a CHAIN for CHECK, and sets the hooks of CHECK to those of the chain."
  (let* ((wanted (field params "chain"))
         (chain (make-chain :check check :report report
                            :octets (coerce (sb-ext:string-to-octets (check-text check) :external-format :utf-8) 'octets)
                            :keys (new-pipe) :answers (new-pipe) :mover-pipe (new-pipe)
                            :spacing (/ (field wanted "spacing_ms" 15) 1000)
                            :limit (field wanted "checkpoints" 48)
                            :deadline (field params "deadline" 10)))
         (emit (check-emit check)))
    (setf (check-emit check) (lambda (finding)
                               (push finding (chain-reported chain))
                               (funcall emit finding))
          (check-before-form check) (lambda (start) (before-form-of-chain chain start))
          (check-around-form check) (lambda (function) (call-noting-mentions (chain-recorder chain) (check-form check) function))
          (check-after-form check) (lambda (start end state) (after-form-of-chain chain start end state)))
    chain))

(defun check-with-chain (params)
  "Checks a text in a copy that becomes the head of a chain."
  (unless (chain-possible-p params)
    (return-from check-with-chain (check-in-copy params)))
  (sb-posix:setpgid 0 0)
  (let* ((report (begin-in-copy params))
         (check (check-of-params params report (field params "path") (field params "text")))
         (text (check-text check)))
    (put-source check)
    ;; Each of the many processes would otherwise copy a whole large page.
    #+linux (advise-memory (sap-integer (free-pointer)) +free-run+ +madv-nohugepage+)
    (discard-fasls (scratch-directory params))
    (let ((chain (chain-of-params params check report)))
      (unless (confine-copy params report
                            (lambda (landlock) (confine-calls-of-chain landlock (pipe-writer (chain-keys chain)))))
        (finish-check check report nil "the filter of a chain could not be applied")
        (exit-process 0))
      (hook-interruptions)
      (setf *chain* chain)
      (finish-check check report t)
      ;; A process forked for work ends within the compiler's loop.
      (unless (eq (chain-role chain) :runner) (exit-process 71))
      (keep-chain chain report text (check-withheld check)))))

(define-feature "chain" () (bool (chain-internals-p)))
