;;;; `session-reading`: the syntax with which a session would read code now, for a person who is
;;;; asked whether the code may be evaluated.

(in-package :consort)

(define-global *standard-readtable* (copy-readtable nil) "A standard readtable to compare with.")

(defun dispatching-p (char readtable)
  (ignore-errors (get-dispatch-macro-character char #\A readtable) t))

(defun read-alike-p (char readtable)
  "Returns true if CHAR begins the same macro in READTABLE and in the standard one, or none in both.
  The sub-characters on which CHAR dispatches are not compared."
  (multiple-value-bind (function non-terminating) (get-macro-character char readtable)
    (multiple-value-bind (standard-function standard-non-terminating) (get-macro-character char *standard-readtable*)
      (and (eq (not non-terminating) (not standard-non-terminating))
           ;; The function of a character that dispatches differs between readtables.
           (if (dispatching-p char *standard-readtable*)
               (dispatching-p char readtable)
               (eq function standard-function))))))

(defun readtable-differences (readtable)
  "The characters, as strings of one or two, that READTABLE reads differently from the standard one.
  Only macro characters among the first 256 characters are compared."
  (loop for code below 256
        for char = (code-char code)
        if (not (read-alike-p char readtable))
          collect (string char)
        else when (dispatching-p char readtable)
               append (loop for code below 256
                            for sub = (code-char code)
                            unless (or (lower-case-p sub)
                                       (eq (get-dispatch-macro-character char sub readtable)
                                           (get-dispatch-macro-character char sub *standard-readtable*)))
                              collect (coerce (list char sub) 'string))))

(defun syntax-differences (settings)
  "Returns the parts of SETTINGS that make code read differently from standard syntax, each in a few
  words."
  (let ((readtable (setting settings '*readtable*)) (base (setting settings '*read-base*)))
    (append (unless (eq (readtable-case readtable) :upcase)
              (list (with-standard-io-syntax (format nil "readtable-case ~S" (readtable-case readtable)))))
            (unless (eql base 10)
              (list (with-standard-io-syntax (format nil "*read-base* ~D" base))))
            (readtable-differences readtable))))

(define-operation "session-reading" :dispatcher (id params)
  (let* ((name (param params "session" 'string :default nil))
         (session (and name (gethash name *sessions*)))
         (settings (or (and session (session-settings session)) *image-settings*)))
    (object "package" (package-of-settings settings)
            "syntax" (coerce (syntax-differences settings) 'vector))))
