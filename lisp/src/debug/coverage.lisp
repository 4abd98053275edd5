;;;; Coverage: the forms of a definition that ran. A probe with the flag +COVER-FLAG+ is active
;;;; until a thread passes it. Atoms have no probe.

(in-package :consort)

(defconstant +missed-forms+ 10 "The maximum number of forms that are listed for a definition.")
(defconstant +missed-text+ 60 "The maximum number of characters shown of such a form.")

(defun note-covered (unit number)
  "Notes that a thread passed the probe NUMBER of UNIT."
  (let ((flags (unit-flags unit)))
    ;; Other threads set flags of units that have breakpoints.
    (when (logtest +cover-flag+ (aref flags number))
      (setf (aref flags number) (logandc2 (aref flags number) +cover-flag+)))))

(defun cover-piece (text pieces piece package)
  "Puts probes into the definition at PIECE of TEXT, which was evaluated, so that it notes which of
  its forms run. TEXT is read in PACKAGE at its beginning. Returns the unit, or NIL if the
  definition can have no probes."
  (handler-case
      (let ((unit (make-unit-of "code" text piece (package-before text pieces piece package) :loaded nil)))
        (let ((*entry-probes* nil)) (compile-unit unit))
        (unless (eq (unit-kind unit) :method) (install-definition unit (unit-new unit)))
        (fill (unit-flags unit) +cover-flag+ :end (length (unit-sites unit)))
        (setf (unit-start unit) (car piece))
        unit)
    (error () nil)))

(defun cover-definitions (text package)
  "Puts probes into the definitions of TEXT, which was evaluated in PACKAGE, so that they note which
  of their forms run. Returns a list of (UNIT . TEXT)."
  (when (can-probe-p)
    (let* ((text (coerce text 'text))
           (pieces (handler-case (toplevel-pieces text) (error () '()))))
      (loop for piece in pieces
            for unit = (cover-piece text pieces piece package)
            when unit collect (cons unit text)))))

(defun site-lists (unit)
  "The lists of UNIT's text that have probes, as a list of (START END RAN), in the order of START
  and outer before inner. If a macro has copied a list to several places, it ran if one of the
  copies did."
  (let ((spans (make-hash-table :test #'equal)))
    (loop for site across (unit-sites unit)
          for number from 0
          for key = (cons (site-start site) (site-end site))
          do (setf (gethash key spans) (or (gethash key spans) (not (logtest +cover-flag+ (aref (unit-flags unit) number))))))
    (sort (loop for (start . end) being the hash-keys of spans using (hash-value ran) collect (list start end ran))
          (lambda (one other) (or (< (first one) (first other)) (and (= (first one) (first other)) (> (second one) (second other))))))))

(defun missed-lists (lists)
  "The outermost of LISTS, a result of SITE-LISTS, that did not run: a list of (START END)."
  (loop with passed = 0
        for (start end ran) in lists
        unless (or ran (< start passed))
          collect (list start end) and do (setf passed end)))

(defun coverage-json (unit text)
  "The object Coverage (docs/wire.md) of UNIT, a definition of TEXT."
  (let* ((lists (site-lists unit)) (unit-start (unit-start unit)) (unit-text (unit-text unit)))
    (object "name" (or (definition-name text unit-start) (string-downcase (princ-to-string (unit-name unit))))
            "forms" (length lists)
            "ran" (count-if #'third lists)
            "missed" (loop for (start end) in (missed-lists lists)
                           repeat +missed-forms+
                           collect (multiple-value-bind (line column) (line-and-column text (+ unit-start start))
                                     (let ((shown-end (min end (+ start +missed-text+) (or (position #\Newline unit-text :start start) end))))
                                       (object "line" line "column" column "text" (subseq unit-text start shown-end))))))))
