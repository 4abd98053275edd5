;;;; The keeper of a chain: the process that compiled the last form. The keeper has the records of
;;;; all forms. For each edit it sends the host the findings of the edited text, and has other
;;;; processes of the chain compile as few forms as possible for that.

(in-package :consort)

(defstruct (keeper (:constructor make-keeper (chain check text withheld-names)))
  (chain nil :read-only t)
  ;; The check of the base text, in which withheld forms are white space.
  (check nil :read-only t)
  (text "" :type text :read-only t)     ; the base text as the host has it
  (withheld-names '() :read-only t)     ; the names that its withheld forms would define
  (base #() :type simple-vector)        ; records
  (keys (make-hash-table :test 'equal) :read-only t) ; words of a name -> key
  ;; The names of functions that the base text defines, computed when first needed.
  (tokens '())
  (users (make-hash-table) :read-only t) ; key -> indexes of the forms that mention it
  ;; (INDEX . CHECKPOINT): the form before which the mover waits, and the checkpoint that forked
  ;; it; NIL when there is no mover. The mover is the checkpoint that follows the edits.
  (mover nil)
  (ready nil)                           ; the pipe on which a forked process waits for work
  (running nil)                         ; the pipe of the checkpoint that waits for its child to end
  (host nil)                            ; the line reader of the host's messages
  (answers nil))                        ; the line reader of the messages of the chain's processes

;;; Keys for names

(defun key-of (keeper words)
  (let ((keys (keeper-keys keeper)))
    (or (gethash words keys)
        (setf (gethash words keys) (hash-table-count keys)))))

(defun with-keys (keeper record)
  "Replaces the names in RECORD, which are strings, by their keys, which are numbers. Returns
  RECORD."
  (flet ((key (words) (key-of keeper words)))
    (setf (record-uses record) (loop for (kind name . more) in (record-uses record) collect (list* kind (key name) more))
          (record-keyword-uses record) (loop for (name . more) in (record-keyword-uses record) collect (cons (key name) more))
          (record-methods record) (loop for (name . more) in (record-methods record) collect (cons (key name) more))
          (record-defines record) (loop for (kind name root) in (record-defines record) collect (list kind (key name) (key root)))
          (record-effects record) (loop for (name . more) in (record-effects record) collect (cons (key name) more))
          (record-mentions record) (mapcar #'key (record-mentions record))
          (record-name record) (and (record-name record) (key (record-name record)))))
  record)

(defun index-records (keeper records)
  (setf (keeper-base keeper) (map 'simple-vector (lambda (record) (with-keys keeper record)) records))
  (loop for record across (keeper-base keeper) for index from 0
        do (dolist (key (record-mentions record))
             (push index (gethash key (keeper-users keeper))))))

;;; Processes

(defun pipe-of-mover (keeper) (chain-mover-pipe (keeper-chain keeper)))

(defun next-answer (keeper)
  "The next message of another process of the chain. Ends this process when there are no more."
  (or (next-message (keeper-answers keeper)) (exit-process 0)))

(defun await-reaped (keeper)
  "Waits until the process that was forked for work has ended."
  (when (keeper-running keeper)
    (loop until (field (next-answer keeper) "reaped"))
    (setf (keeper-running keeper) nil)))

(defun send-to-pipe (pipe &rest message)
  (send-message (pipe-writer pipe) (apply #'object message)))

(defun stop-ready (keeper)
  "Ends the process that waits for work, if there is one."
  (when (keeper-ready keeper)
    (send-to-pipe (keeper-ready keeper) "stop" :true)
    (setf (keeper-ready keeper) nil))
  (await-reaped keeper))

(defun stop-mover (keeper)
  "Ends the mover, if there is one, and waits until its parent has reaped it."
  (when (keeper-mover keeper)
    (stop-ready keeper)
    (send-to-pipe (pipe-of-mover keeper) "quit" :true)
    (setf (keeper-mover keeper) nil)
    (loop until (field (next-answer keeper) "reaped"))))

(defun fixed-checkpoint (keeper index)
  "The last checkpoint at or before the form INDEX."
  (find-if (lambda (checkpoint) (<= (checkpoint-index checkpoint) index)) (chain-checkpoints (keeper-chain keeper))))

(defun have-ready (keeper index)
  "Ensures that a process that the last checkpoint at or before the form INDEX forked waits for
  work. Returns the pipe on which it waits, and the index of the checkpoint."
  (let* ((fixed (fixed-checkpoint keeper index)) (mover (keeper-mover keeper))
         (use-mover (and mover (<= (checkpoint-index fixed) (car mover) index)))
         (pipe (if use-mover (pipe-of-mover keeper) (checkpoint-pipe fixed))))
    ;; The checkpoint that forked the mover waits for its end, and can fork no other process.
    (when (and mover (not use-mover) (eq (cdr mover) fixed)) (stop-mover keeper))
    (unless (eq pipe (keeper-ready keeper))
      (stop-ready keeper)
      (send-to-pipe pipe "fork" :true)
      (setf (keeper-ready keeper) pipe
            (keeper-running keeper) pipe))
    (values pipe (if use-mover (car mover) (checkpoint-index fixed)))))

(defun move-to (keeper index)
  "Ensures that a checkpoint waits before the form INDEX, where the next edit probably is, and that
  a process that it forked waits for work."
  (multiple-value-bind (pipe at) (have-ready keeper index)
    (unless (= at index)
      (when (keeper-mover keeper)       ; all movers use one pipe
        (stop-mover keeper)
        (setf pipe (have-ready keeper index)))
      (send-to-pipe pipe "move" index)
      (setf (keeper-ready keeper) nil)
      (loop for message = (next-answer keeper)
            do (cond ((field message "parked")
                      (setf (keeper-running keeper) nil
                            (keeper-mover keeper) (cons index (fixed-checkpoint keeper index)))
                      (return))
                     ((field message "reaped") ; it ended before that form
                      (setf (keeper-running keeper) nil)
                      (return)))))
    (when (< index (length (keeper-base keeper))) (have-ready keeper index))))

;;; An edited text

(defstruct (edit (:constructor make-edit (cut old-end new-end text withheld-names)))
  "The difference of TEXT from the base text. In both, withheld forms are white space."
  (cut 0 :type fixnum) (old-end 0 :type fixnum) (new-end 0 :type fixnum) text withheld-names
  (first 0) (behind 0))                 ; the replaced forms: FIRST to BEHIND, exclusive

(defun edit-distance (edit) (- (edit-new-end edit) (edit-old-end edit)))

(defun common-start (a b)
  (declare (type text a b) (optimize speed))
  (loop for i of-type fixnum from 0 below (min (length a) (length b))
        unless (char= (char a i) (char b i)) return i
        finally (return (min (length a) (length b)))))

(defun common-end (a b limit)
  (declare (type text a b) (type fixnum limit) (optimize speed))
  (loop for i of-type fixnum from 0 below limit
        unless (char= (char a (- (length a) i 1)) (char b (- (length b) i 1))) return i
        finally (return limit)))

(defun compare-texts (keeper text withheld-names)
  "The EDIT that leads from the base text to TEXT."
  (let* ((old (check-text (keeper-check keeper)))
         (cut (common-start old text))
         (tail (common-end old text (- (min (length old) (length text)) cut)))
         (edit (make-edit cut (- (length old) tail) (- (length text) tail) text withheld-names))
         (base (keeper-base keeper)) (count (length base)))
    ;; A form that only touches the edit is also replaced: text that is typed directly after a form
    ;; may become part of it.
    (setf (edit-first edit) (or (position-if (lambda (record) (>= (record-end record) cut)) base) count)
          (edit-behind edit) (or (position-if (lambda (record) (> (record-start record) (edit-old-end edit))) base :start (edit-first edit)) count))
    edit))

(defun edit-of-request (keeper request)
  "The EDIT that REQUEST describes. `insert` replaces the characters from `start` to `end` of the
  base text as the host has it. `withheld` are the spans of the new text that are not checked."
  (let* ((new (spliced (keeper-text keeper) (field request "start") (field request "end") (coerce (field request "insert") 'text)))
         (withheld (span-conses (field request "withheld" #()))))
    (compare-texts keeper
                   (if withheld (blank new withheld) new)
                   (withheld-names new withheld))))

(defun withheld-names (text withheld)
  "The names that the forms in the spans WITHHELD of TEXT would define."
  (loop for (start) in withheld
        for token = (definition-name text start)
        when token collect (plain-name token)))

(defun line-start (text position)
  (declare (type text text))
  (let ((before (position #\Newline text :end (min position (length text)) :from-end t))) (if before (1+ before) 0)))

(defun forgettable-tokens (text start end)
  "The names, as written but in upper case, of the functions that DEFUN and DEFGENERIC forms at the
  beginning of lines of TEXT from START to END define."
  (loop for at in (definitions-between text start end)
        for token = (definition-name text at)
        for head = (and token (string-upcase (subseq text (1+ at) (position-if #'delimiter-p text :start (1+ at)))))
        when (member head '("DEFUN" "DEFGENERIC") :test #'string=) collect (string-upcase token)))

(defun other-tokens (keeper old new)
  "Returns the names that only one of two texts, the base text and an edited text, defines as
  functions. OLD are the names that the edited lines define in the base text. NEW are those that
  they define in the edited text."
  (let ((all (or (keeper-tokens keeper)
                 (let ((text (check-text (keeper-check keeper))))
                   (setf (keeper-tokens keeper) (forgettable-tokens text 0 (length text)))))))
    (remove-if (lambda (token)
                 (flet ((times (tokens) (count token tokens :test #'string=)))
                   (eq (plusp (times all)) (plusp (+ (times new) (- (times all) (times old)))))))
               (set-exclusive-or old new :test #'string=))))

(defun known-function-p (keeper token)
  "Returns true if TOKEN, in one of the packages of the text, names a function of the image. A
  function that the check has made undefined counts too."
  (some (lambda (package)
          (let ((symbol (and (package-name package) (find-symbol (plain-name token) package))))
            (and symbol
                 (or (fboundp symbol) (member symbol (check-forgotten (keeper-check keeper)))))))
        (chain-packages (keeper-chain keeper))))

(defun why-whole (keeper edit)
  "The reason, in words, for checking the edited text as a whole; NIL when that is not necessary."
  (let* ((old (check-text (keeper-check keeper))) (new (edit-text edit)) (base (keeper-base keeper))
         (first (edit-first edit)) (behind (edit-behind edit))
         (start (line-start old (if (< first (length base)) (min (edit-cut edit) (record-start (aref base first))) (edit-cut edit))))
         (end (end-of-line old (if (< first behind) (max (edit-old-end edit) (record-end (aref base (1- behind)))) (edit-old-end edit))))
         (new-end (+ end (edit-distance edit))))
    (flet ((condition-p (text end) (search "(define-condition" text :start2 start :end2 end :test #'char-equal))
           (in-package-p (text end) (< (let ((at start)) (if (line-begins-p text at "(in-package") at (next-in-package text at))) end)))
      (cond ((loop for index from first below behind thereis (record-in-package (aref base index))) "an IN-PACKAGE is edited")
            ((or (in-package-p old end) (in-package-p new new-end)) "an IN-PACKAGE is edited")
            ;; The compiler reports a condition that is defined twice only at the end of the file.
            ((or (condition-p old end) (condition-p new new-end)) "a condition is edited")
            ((some (lambda (token) (known-function-p keeper token))
                   (other-tokens keeper (forgettable-tokens old start end) (forgettable-tokens new start new-end)))
             "a function of the image is renamed")))))

(defun line-begins-p (text position words)
  (let ((end (+ position (length words)))) (and (<= end (length text)) (string-equal words text :start2 position :end2 end))))

(defun moved-record (record edit)
  "A copy of RECORD, the record of a form after EDIT, with its positions moved by the difference of
  the texts' lengths. RECORD itself when that is 0."
  (let ((distance (edit-distance edit)) (edge (edit-old-end edit)))
    (if (zerop distance)
        record
        (flet ((moved (finding) (moved-finding finding edge distance)))
          (let ((copy (copy-form-record record)))
            (setf (record-start copy) (+ distance (record-start record))
                  (record-end copy) (+ distance (record-end record))
                  (record-span copy) (cons (+ distance (car (record-span record))) (+ distance (cdr (record-span record))))
                  (record-findings copy) (mapcar #'moved (record-findings record))
                  (record-uses copy) (loop for (kind name words finding) in (record-uses record) collect (list kind name words (moved finding)))
                  (record-keyword-uses copy) (loop for (name keyword finding) in (record-keyword-uses record)
                                                   collect (list name keyword (moved finding))))
            copy)))))

(defun composed-findings (keeper edit new sync)
  "The findings of the text of EDIT. The records NEW replace those of the base text's forms from the
  first edited one up to, but without, the form SYNC."
  (let ((base (keeper-base keeper)))
    (settled-findings (keeper-check keeper)
                      (append (coerce (subseq base 0 (edit-first edit)) 'list)
                              new
                              (loop for index from sync below (length base) collect (moved-record (aref base index) edit)))
                      (edit-withheld-names edit))))

(define-condition edit-given-up (error) ()
  (:documentation "Signalled when the process that compiles an edit has ended too early, or when the
  host has sent another message."))

(defun host-waiting-p (keeper) (message-waiting-p (keeper-host keeper)))

(defun await-boundary (keeper)
  "Waits until the process that compiles an edit asks whether to continue. Three values: the records
  that it sent until then, the position that it has reached, and true if that is the end of the
  text. Signals EDIT-GIVEN-UP."
  (let ((records '()) (answers (line-reader-fd (keeper-answers keeper))))
    (loop
      ;; The answer to this edit is not needed once the host has sent another message.
      (loop until (message-waiting-p (keeper-answers keeper))
            do (when (eq :host (await-either answers (line-reader-fd (keeper-host keeper))))
                 (error 'edit-given-up)))
      (let ((message (next-answer keeper)))
        (cond ((field message "form") (push (with-keys keeper (record-of-json (field message "form"))) records))
              ((field message "boundary")
               (return (values (nreverse records) (field message "boundary") (field message "end"))))
              ((field message "reaped")
               (setf (keeper-running keeper) nil (keeper-ready keeper) nil)
               (error 'edit-given-up)))))))

(defun await-either (answers host &optional (milliseconds -1))
  "Waits until there is something to read from the file descriptor ANSWERS or HOST. Returns :ANSWERS
  or :HOST, or NIL when nothing comes for MILLISECONDS. A negative number means no time limit."
  ;; Two of struct pollfd: the descriptor, and POLLIN (1) in the upper half.
  (with-octets (descriptors ((logior answers (ash 1 32)) (logior host (ash 1 32))))
    (loop
      (let ((ready (call-c "poll" sb-alien:int (sb-alien:unsigned-long descriptors) (sb-alien:unsigned-long 2) (sb-alien:int milliseconds))))
        (cond ((plusp (ash (sap-32 (int-sap descriptors) 4) -16)) (return :answers))
              ((plusp (ash (sap-32 (int-sap descriptors) 12) -16)) (return :host))
              ((zerop ready) (return nil)))))))

(defun check-edit (keeper edit answer)
  "Calls ANSWER with the findings of the text of EDIT, and with true if they are final. ANSWER is
  called when the edited forms are compiled. If other forms depend on them, these findings are not
  final, and ANSWER is called again when the dependent forms are compiled."
  (let* ((base (keeper-base keeper)) (count (length base)) (first (edit-first edit)) (distance (edit-distance edit))
         (pipe (have-ready keeper first))
         (index (if (eq pipe (pipe-of-mover keeper)) (car (keeper-mover keeper)) (checkpoint-index (fixed-checkpoint keeper first))))
         (sync (edit-behind edit)) (new '()))
    (flet ((until (index) (if (< index count) (+ distance (record-start (aref base index))) :null)))
      (labels ((receive ()
                 "Takes the next records, and sets SYNC to the form of the base text that comes
                 next."
                 (multiple-value-bind (records boundary end) (await-boundary keeper)
                   (setf new (append new records))
                   (let ((place (and (not end) (position (- boundary distance) base :key #'record-start :start sync))))
                     (cond (end (setf sync count))
                           (place (setf sync place))
                           (t (go-on :null)))))) ; inside a former form: to the end of the text
               (go-on (until)
                 (send-to-pipe pipe "go" (object "until" until))
                 (receive)))
        (send-to-pipe pipe "edit" (object "start" (if (zerop index) 0 (record-end (aref base (1- index))))
                                          "cut" (edit-cut edit) "old_end" (edit-old-end edit)
                                          "insert" (subseq (edit-text edit) (edit-cut edit) (edit-new-end edit))
                                          "first" first "until" (until sync)))
        (setf (keeper-ready keeper) nil)
        (unwind-protect
             (progn
               (receive)
               (loop for told = nil then t
                     for last = (last-dependent base (keeper-users keeper) first sync (edit-cut edit) (edit-old-end edit) new)
                     do (cond ((null last)
                               (funcall answer (composed-findings keeper edit new sync) t)
                               (return))
                              ((not told)
                               (funcall answer (composed-findings keeper edit new sync) nil)))
                        (go-on (until (1+ last)))))
          (when (keeper-running keeper)
            (send-to-pipe pipe "stop" :true)))))
    (await-reaped keeper)))

;;; Serving the host

(defun send-findings (report number findings final)
  "Sends the host FINDINGS, the findings of the text of its edit NUMBER. FINAL is true if no others
  follow for that edit."
  (dolist (finding findings) (send-line report (object "diagnostic" (finding-json finding))))
  (send-line report (object "answer" (object "edit" number "final" (bool final))) :flush t))

(defun answer-edit (keeper report request)
  "Answers the host's REQUEST, an edit: sends the findings, or the reason why the text must be
  checked as a whole."
  (let* ((number (field request "number"))
         (edit (edit-of-request keeper request))
         (why (why-whole keeper edit)))
    (handler-case
        (cond (why (send-line report (object "whole" (object "edit" number "why" why)) :flush t))
              ((= (edit-cut edit) (edit-old-end edit) (edit-new-end edit))
               (send-findings report number
                              (settled-findings (keeper-check keeper) (coerce (keeper-base keeper) 'list) (edit-withheld-names edit)) t))
              (t
               (check-edit keeper edit (lambda (findings final) (send-findings report number findings final)))
               (unless (host-waiting-p keeper)
                 (move-to keeper (min (edit-first edit) (max 0 (1- (length (keeper-base keeper)))))))))
      (edit-given-up ()
        (await-reaped keeper)
        (unless (host-waiting-p keeper)
          (send-line report (object "whole" (object "edit" number "why" "the process that compiled the edit ended")) :flush t))))))

(defun end-chain (keeper)
  "Has the other processes of the chain end, and ends this one. Does not return."
  (stop-ready keeper)
  (stop-mover keeper)
  (dolist (checkpoint (chain-checkpoints (keeper-chain keeper)))
    (send-to-pipe (checkpoint-pipe checkpoint) "quit" :true))
  (exit-process 0))

(defun same-findings-p (a b)
  "Returns true if A and B are the same findings in any order."
  (flet ((key (finding)
           (list (finding-start finding) (finding-end finding) (finding-severity finding) (finding-code finding) (finding-message finding))))
    (null (set-exclusive-or (mapcar #'key a) (mapcar #'key b) :test #'equal))))

(defun base-agrees-p (keeper)
  "Returns true if the findings that the records give are those that the check of the base text
  reported."
  (same-findings-p (settled-findings (keeper-check keeper) (coerce (keeper-base keeper) 'list) (keeper-withheld-names keeper))
                   (chain-reported (keeper-chain keeper))))

(defun serve-host (keeper report)
  "Answers the host's messages until it ends the chain. Does not return."
  (loop
    (let* ((message (or (next-message (keeper-host keeper)) (end-chain keeper)))
           (edit (field message "edit")) (cursor (field message "cursor")))
      (cond (edit (answer-edit keeper report edit))
            (cursor (move-to keeper (or (position-if (lambda (record) (>= (record-end record) cursor)) (keeper-base keeper)) 0)))
            (t (end-chain keeper))))))

(defun keep-chain (chain report text withheld)
  "Answers the host's edits of TEXT, the base text, whose spans WITHHELD are not checked, until the
  host ends the chain. Ends the chain at once, and reports that, when it has no checkpoint or the
  records do not agree with the reported findings. Does not return."
  (let ((keeper (make-keeper chain (chain-check chain) text (withheld-names text withheld))))
    (stop-alarms)
    (setf *check-end* nil
          (keeper-host keeper) (make-line-reader (report-descriptor report))
          (keeper-answers keeper) (make-line-reader (pipe-reader (chain-answers chain))))
    (index-records keeper (reverse (chain-records chain)))
    (unless (and (chain-checkpoints chain) (base-agrees-p keeper))
      (send-line report (object "chain" :null) :flush t)
      (end-chain keeper))
    (send-line report (object "chain" (object "pids" (cons (sb-posix:getpid) (mapcar #'checkpoint-pid (chain-checkpoints chain)))
                                              "forms" (length (keeper-base keeper))))
               :flush t)
    (handler-bind ((error (lambda (condition)
                            (send-line report (object "failed" (condition-report condition)) :flush t)
                            (exit-process 70))))
      (serve-host keeper report))))
