;;;; The rules by which forms of a text are compiled again after an edit of other forms:
;;;; docs/architecture.md, "A chain". The records here have keys (integers) in place of names.

(in-package :consort)

(defun changes-by-name (old new)
  "Compares the effects of the records OLD with those of NEW, which replace OLD and begin in the
  same state. Returns two lists of keys. The first has the names whose definitions known to the
  compiler differ, and the generic functions whose methods differ. The second has the names about
  which the compiler's assumptions differ. A name that only one side changed has its initial value
  on the other side."
  (let ((table (make-hash-table)) (main '()) (assumed '()))
    (flet ((note (records place)
             (dolist (record records)
               (loop for (key main-before assumed-before main-after assumed-after) in (record-effects record)
                     do (let ((entry (or (gethash key table)
                                         (setf (gethash key table) (vector main-before assumed-before main-before assumed-before)))))
                          (setf (aref entry place) main-after
                                (aref entry (1+ place)) assumed-after))))))
      (note old 0)
      (note new 2))
    (maphash (lambda (key entry)
               (unless (eql (aref entry 0) (aref entry 2)) (push key main))
               (unless (eql (aref entry 1) (aref entry 3)) (push key assumed)))
             table)
    (values (union main (changed-methods old new)) assumed)))

(defun changed-methods (old new)
  "The keys of the generic functions whose methods differ between the records OLD and NEW."
  (flet ((methods (records)
           (loop for record in records append (mapcar (lambda (method) (cons (first method) (second method))) (record-methods record)))))
    (remove-duplicates (mapcar #'car (set-exclusive-or (methods old) (methods new) :test #'equal)))))

(defun tainted (changed records)
  "Returns the keys CHANGED and the keys whose values may depend on them. Goes through RECORDS in
  order: if a form mentions a key of the result so far, the keys to which it gives a value that has
  no digest of its own are added."
  (let ((all (make-hash-table)))
    (dolist (key changed) (setf (gethash key all) t))
    (dolist (record records)
      (when (some (lambda (key) (gethash key all)) (record-mentions record))
        (loop for (key nil nil nil nil opaque) in (record-effects record)
              when opaque do (setf (gethash key all) t))))
    (loop for key being each hash-key of all collect key)))

(defun same-forms-p (old new)
  "Returns true if the records OLD and NEW are of the same forms in the same order."
  (and (= (length old) (length new))
       (every (lambda (a b) (eql (record-digest a) (record-digest b))) old new)))

(defun defined-keys (record)
  "The keys of the names that the form of RECORD or its expansion defines. May contain NIL."
  (adjoin (record-name record) (remove-duplicates (mapcar #'second (record-defines record)))))

(defun names-defined-otherwise (old new)
  "The keys of the names that the records NEW define more often or less often than the records OLD.
  A declaimed type counts as a definition, too."
  (let ((counts (make-hash-table)))
    (flet ((note (records by)
             (dolist (record records)
               (dolist (key (defined-keys record)) (when key (incf (gethash key counts 0) by))))))
      (note old -1)
      (note new 1))
    (loop for key being each hash-key of counts using (hash-value count) unless (zerop count) collect key)))

(defun exchanged (old new)
  "The records of OLD whose forms are not in NEW, and those of NEW whose forms are not in OLD."
  (set-exclusive-or old new :key #'record-digest))

(defun state-differs-p (old new before)
  "Returns true if the compiler's state that does not belong to a name differs between the ends of
  OLD and NEW, or is unknown at one of them. BEFORE is the record before both; NIL if none precedes
  them."
  (flet ((after (records) (cond (records (record-global (first (last records))))
                                (before (record-global before)))))
    (let ((old (after old)) (new (after new)))
      ;; At the start of the text, where there is no record yet, the state is unknown.
      (or (null old) (null new) (/= old new)))))

(defun last-dependent (base users first sync cut old-end new)
  "The index in BASE, a vector of records, of the last form from the index SYNC on that must be
  compiled again; NIL if there is none. The records NEW replace those from the index FIRST up to
  SYNC. The text from the offset CUT to OLD-END was replaced. USERS maps a key to the indexes of the
  forms that mention it."
  (let* ((old (coerce (subseq base first sync) 'list))
         (count (length base))
         (last nil))
    (labels ((need (index)
               (when (and (>= index sync) (or (null last) (> index last))) (setf last index)))
             (need-all () (return-from last-dependent (and (< sync count) (1- count)))))
      (unless (same-forms-p old new)
        (when (or (some #'record-opaque (exchanged old new))
                  (state-differs-p old new (and (plusp first) (aref base (1- first)))))
          (need-all))
        (let ((names (names-defined-otherwise old new)))
          (when names
            (loop for index from sync below count
                  when (intersection (defined-keys (aref base index)) names) do (need index)))))
      (let ((from (if (< first count) (min cut (record-start (aref base first))) cut)))
        (loop for index from sync below count
              do (dolist (finding (record-findings (aref base index)))
                   (loop for (start nil nil file) in (finding-related finding)
                         when (and (null file) (<= from start) (< start old-end)) do (need index)))))
      (multiple-value-bind (main assumed) (changes-by-name old new)
        ;; The records before FIRST count too: a class that is defined earlier in the text refers to
        ;; the present definitions of its superclasses.
        (let ((changed (tainted main (append (coerce (subseq base 0 first) 'list) new))))
          (when (some (lambda (record) (and (record-opaque record) (intersection (record-mentions record) changed))) new)
            (need-all))
          (dolist (key changed)
            (dolist (index (gethash key users)) (need index)))
          ;; The names that a form mentions do not include those that code used while the form was
          ;; read (#.), so such a form depends on any change.
          (when changed
            (loop for index from sync below count
                  when (record-read-eval (aref base index)) do (need index))))
        (dolist (key assumed)
          (dolist (index (gethash key users))
            (when (and (>= index sync) (member key (record-defines (aref base index)) :key #'third))
              (need index))))))
    last))
