;;;; The contents of an editor's trees: packages and their symbols, and threads, which can be
;;;; interrupted and ended.

(in-package :consort)

;;; Packages. No code here interns a symbol or runs user code.

(defun program-package-p (package)
  "Returns true if PACKAGE is a program's, and does not belong to the Lisp, to its contribs, to ASDF
  or to Consort."
  (let ((name (package-name package)))
    (not (or (sb-ext:package-locked-p package)
             (member name '("KEYWORD" "CONSORT") :test #'string=)
             (some (lambda (prefix) (eql 0 (search prefix name))) '("SB-" "CONSORT/" "ASDF" "UIOP" "QL-" "QUICKLISP"))))))

(define-operation "packages" :thread (id params)
  (flet ((facts (package &aux (exports 0))
           (do-external-symbols (symbol package)
             (declare (ignorable symbol))
             (incf exports))
           (object "name" (package-name package)
                   "nicknames" (copy-list (package-nicknames package))
                   "exports" exports
                   "own" (bool (program-package-p package)))))
    (object "packages" (mapcar #'facts (sort (remove-if-not #'package-name (list-all-packages)) #'string< :key #'package-name)))))

(defun home-symbols (package)
  "The symbols at home in PACKAGE that it exports or that name something, sorted, each in a pair
  with true if it is exported."
  (let ((found '()))
    (with-package-iterator (next package :internal :external)
      (loop
        (multiple-value-bind (more symbol status) (next)
          (unless more (return))
          (when (and (eq (symbol-package symbol) package)
                     (or (eq status :external) (naming-kinds symbol)))
            (push (cons symbol (eq status :external)) found)))))
    (sort found #'string< :key (lambda (entry) (symbol-name (car entry))))))

(define-operation "package-symbols" :interruptible (id params)
  (let* ((name (param params "name" 'string))
         (package (find-package-named name))
         (symbols (home-symbols package)))
    (object "count" (length symbols)
            "symbols" (loop for (symbol . external) in (subseq symbols 0 (min +most-names+ (length symbols)))
                            collect (object "name" (symbol-name symbol)
                                            "external" (bool external)
                                            "kinds" (mapcar (lambda (kind) (field kind "kind")) (naming-kinds symbol)))))))

;;; Threads

(define-global *thread-numbers* '() "A list of (NUMBER . THREAD) for the threads that were listed
  and still lived.")
(define-global *last-thread-number* 0 "The number that was given last.")
(define-global *thread-numbers-lock* (sb-thread:make-mutex :name "consort thread numbers")
  "Guards the two variables above.")

(defun number-threads (threads)
  "A list of (NUMBER . THREAD) for THREADS. Each thread keeps its number as long as it lives."
  (with-lock (*thread-numbers-lock*)
    (setf *thread-numbers* (remove-if-not #'sb-thread:thread-alive-p *thread-numbers* :key #'cdr))
    (loop for thread in threads
          collect (or (rassoc thread *thread-numbers* :test #'eq)
                      (first (push (cons (incf *last-thread-number*) thread) *thread-numbers*))))))

(defun evaluation-in (thread)
  "The evaluation that runs in THREAD, one of Consort's."
  (find-if (lambda (evaluation) (eq (evaluation-thread evaluation) thread)) *running*))

(define-operation "threads" :thread (id params)
  (flet ((facts (entry)
           (destructuring-bind (number . thread) entry
             (let ((own (own-thread-p thread))
                   (evaluation (evaluation-in thread)))
               (object "number" number
                       "name" (thread-title thread)
                       "kind" (cond (evaluation "evaluation") (own "system") (t "user"))
                       "ms" (if evaluation (milliseconds-since (evaluation-started evaluation)) :null))))))
    (object "threads" (mapcar #'facts (number-threads (reverse (remove sb-thread:*current-thread* (remove-if #'ephemeral-thread-p (sb-thread:list-all-threads)))))))))

(defun stop-thread (number interruption)
  "Makes the thread of that NUMBER call INTERRUPTION. If an evaluation runs there, it is stopped instead. A
  thread that is not the user's is refused."
  (let* ((thread (cdr (assoc number *thread-numbers*)))
         (evaluation (and thread (evaluation-in thread))))
    (cond ((or (null thread) (not (sb-thread:thread-alive-p thread)))
           (refuse "not-found" "There is no thread ~D any more" number))
          (evaluation (stop-evaluation evaluation :cancel))
          ((thread-waiting-p thread) (let ((*interrupts-any-thread* t)) (sb-thread:terminate-thread thread))) ; it takes no interruption
          ((own-thread-p thread) (refuse "bad-params" "The thread ~A is not yours to end" (thread-title thread)))
          ((not (interrupt-outside-foreign-code thread interruption)) (refuse "not-found" "There is no thread ~D any more" number)))
    (object "name" (thread-title thread))))

(define-operation "interrupt-thread" :thread (id params)
  "Interrupts a thread as Ctrl-C does in a terminal: it gets the condition INTERACTIVE-INTERRUPT,
  and ends with a report of where it was unless it handles it. One that waits in a stop ends."
  (stop-thread (param params "number" '(integer 1))
               (lambda () (with-interrupts (error interactive-interrupt)))))

(define-operation "kill-thread" :thread (id params)
  (stop-thread (param params "number" '(integer 1)) (lambda () (sb-thread:terminate-thread sb-thread:*current-thread*))))
