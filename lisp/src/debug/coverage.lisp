;;;; The forms of a definition that ran, by probes that are not idle until a thread comes to them.
;;;; Forms that are no lists have no probe.

(in-package :consort)

(defconstant +missed-forms+ 10 "Forms of a definition that are named when they did not run.")
(defconstant +missed-text+ 60 "Characters that are shown of each.")

(defun note-covered (unit number)
  "Notes that a thread came to the probe NUMBER of UNIT."
  (let ((flags (unit-flags unit)))
    ;; Other threads set flags of units that have breakpoints.
    (when (logtest +cover-flag+ (aref flags number))
      (setf (aref flags number) (logandc2 (aref flags number) +cover-flag+)))))

(defun cover-piece (text pieces piece package)
  "Has the definition that is the PIECE of TEXT, and is in place, note which of its forms run.
  Returns the unit, or NIL where the definition can have no probes."
  (handler-case
      (let ((unit (make-unit-of "code" text piece (package-before text pieces piece package) :loaded nil)))
        (compile-unit unit)
        (unless (eq (unit-kind unit) :method) (put-definition unit (unit-new unit)))
        (fill (unit-flags unit) +cover-flag+ :end (length (unit-sites unit)))
        (setf (unit-start unit) (car piece))
        unit)
    (error () nil)))

(defun cover-definitions (text package)
  "Has the definitions of TEXT, which was evaluated in PACKAGE, note which of their forms run. A
  list of (UNIT . TEXT)."
  (when (can-probe-p)
    (let* ((text (coerce text 'text))
           (pieces (handler-case (toplevel-pieces text) (error () '()))))
      (loop for piece in pieces
            for unit = (cover-piece text pieces piece package)
            when unit collect (cons unit text)))))

(defun site-lists (unit)
  "The lists of UNIT's text that have probes, in their order: (START END RAN). A list that was
  expanded more than once ran if one of its expansions did."
  (let ((spans (make-hash-table :test #'equal)))
    (loop for site across (unit-sites unit)
          for number from 0
          for key = (cons (site-start site) (site-end site))
          do (setf (gethash key spans) (or (gethash key spans) (not (logtest +cover-flag+ (aref (unit-flags unit) number))))))
    (sort (loop for (start . end) being the hash-keys of spans using (hash-value ran) collect (list start end ran))
          (lambda (one other) (or (< (first one) (first other)) (and (= (first one) (first other)) (> (second one) (second other))))))))

(defun missed-lists (lists)
  "The (START END) of those of LISTS that did not run and are in no other that did not."
  (loop with passed = 0
        for (start end ran) in lists
        unless (or ran (< start passed))
          collect (list start end) and do (setf passed end)))

(defun coverage-json (unit text)
  "The JSON of Coverage of UNIT, a definition of TEXT."
  (let* ((lists (site-lists unit)) (begin (unit-start unit)) (own (unit-text unit)))
    (object "name" (or (definition-name text begin) (string-downcase (princ-to-string (unit-name unit))))
            "forms" (length lists)
            "ran" (count-if #'third lists)
            "missed" (loop for (start end) in (missed-lists lists)
                           repeat +missed-forms+
                           collect (multiple-value-bind (line column) (line-and-column text (+ begin start))
                                     (let ((shown (min end (+ start +missed-text+) (or (position #\Newline own :start start) end))))
                                       (object "line" line "column" column "text" (subseq own start shown))))))))
