;;;; `fingerprint`: a digest, by part, of everything that a check could have changed. Two digests of
;;;; an image in which nothing was defined are equal. Values that change by themselves (times,
;;;; counters, caches) are left out.

(in-package :consort)

;;; The digest of a multiset of facts is the sum of their hashes, so that no order is needed.

(declaim (inline hash-string mix))
(defun hash-string (string)
  "The 64-bit FNV-1a hash of STRING."
  (let ((hash #xCBF29CE484222325))
    (declare (type (unsigned-byte 64) hash) (optimize speed (safety 0)))
    (macrolet ((all (type)
                 `(locally (declare (type ,type string))
                    (loop for char across string
                          do (setf hash (ldb (byte 64 0) (* (logxor hash (char-code char)) #x100000001B3)))))))
      (etypecase string
        ((simple-array character (*)) (all (simple-array character (*))))
        (simple-base-string (all simple-base-string))
        (string (all string))))
    hash))

(defun mix (a b)
  "A hash of the two hashes A and B, which depends on their order."
  (declare (type (unsigned-byte 64) a b))
  (let ((x (ldb (byte 64 0) (+ (* a #x9E3779B97F4A7C15) b))))
    (declare (type (unsigned-byte 64) x))
    (logxor x (ash x -29))))

;;; Identities: an object that is replaced by an equal one has changed. Each object gets a number
;;; when it is first seen, and keeps it as long as it lives.

(define-global *identities* (make-hash-table :test #'eq :weakness :key :synchronized t) "The number of each object that a fingerprint has seen.")
(define-global *identities-given* 0 "The count of the numbers that were given.")

(defun identity-hash (object)
  "A hash that only OBJECT has, as long as it lives."
  (typecase object
    (fixnum (ldb (byte 64 0) (* object #x9E3779B97F4A7C15)))
    (character (+ #x1000000 (char-code object)))
    (t (ldb (byte 64 0)
            (* #xD6E8FEB86659FD93
               (or (gethash object *identities*)
                   (setf (gethash object *identities*) (incf *identities-given*))))))))

(defvar *hash-contents* nil
  "True if the contents of hash tables, structures and instances count. That is so in a copy, where
  no other thread changes them.")
(defconstant +objects-looked-into+ 100000 "The maximum number of objects whose contents are hashed
  for one variable.")
(defvar *objects-left* 0 "If *HASH-CONTENTS*, the number of objects whose contents may still be hashed
  for one variable.")
(declaim (type fixnum *objects-left*))

(defun values-in-slots-hash (object depth)
  "A hash of the values in the slots of OBJECT. If the class is of a kind for which reading slots
  may call a user's code, the slots do not count."
  (let ((hash (identity-hash object)) (class (class-of object)))
    (when (or (typep class 'structure-class) (eq (class-of class) (load-time-value (find-class 'standard-class))))
      (dolist (slot (sb-mop:class-slots class))
        (let ((name (sb-mop:slot-definition-name slot)))
          (setf hash (mix hash (if (slot-boundp object name)
                                   (content-hash (slot-value object name) (1- depth))
                                   1))))))
    hash))

(defun entries-hash (table depth)
  "A hash of the keys and values in TABLE that does not depend on their order; zero if there are too
  many."
  (let ((sum 0))
    (declare (type (unsigned-byte 64) sum))
    (maphash (lambda (key value)
               (when (minusp *objects-left*) (return-from entries-hash 0))
               (setf sum (ldb (byte 64 0) (+ sum (mix (content-hash key (1- depth)) (content-hash value (1- depth)))))))
             table)
    sum))

(defun hash-slots-p (object)
  "Returns true if the slots of OBJECT count."
  (and *hash-contents*
       (typep object '(or structure-object standard-object))
       (not (system-symbol-p (class-name (class-of object))))))

(defun content-hash (object depth)
  "A hash of OBJECT that also changes when a list, string or simple vector is changed in place.
  DEPTH levels and a thousand elements of each count."
  (declare (type fixnum depth))
  (when *hash-contents* (decf *objects-left*))
  ;; A number that is read from a raw slot is a new object each time.
  (cond ((and (numberp object) *hash-contents*) (ldb (byte 64 0) (sxhash object)))
        ((or (zerop depth) (null object) (minusp *objects-left*)) (identity-hash object))
        ((consp object)
         (let ((hash (identity-hash object)))
           (loop for rest = object then (cdr rest)
                 repeat 1000
                 while (consp rest)
                 do (setf hash (mix hash (content-hash (car rest) (1- depth))))
                 finally (setf hash (mix hash (if (consp rest) 0 (identity-hash rest)))))
           hash))
        ((stringp object) (mix (identity-hash object) (hash-string object)))
        ((numberp object) (ldb (byte 64 0) (sxhash object)))
        ((or (simple-vector-p object) (and *hash-contents* (vectorp object)))
         (let ((hash (mix (identity-hash object) (length object))))
           (loop for element across object
                 repeat 1000
                 do (setf hash (mix hash (content-hash element (1- depth)))))
           hash))
        ((hash-table-p object)
         (mix (mix (identity-hash object) (hash-table-count object))
              (if (and *hash-contents* (not (sb-ext:hash-table-weakness object))) (entries-hash object depth) 0)))
        ((hash-slots-p object) (values-in-slots-hash object depth))
        (t (identity-hash object))))

;;; Variables that change by themselves

(defparameter *moving-variables* '(*gensym-counter* *random-state* sb-ext:*gc-run-time* * ** *** + ++ +++ / // /// -)
  "Variables whose values change without any action of a user's.")

(defun moving-p (symbol)
  "Returns true if the value of SYMBOL does not count."
  (or (member symbol *moving-variables* :test #'eq)
      (moving-internal-p symbol)
      (eq (symbol-package symbol) (load-time-value (find-package "CONSORT")))))

;;; The parts. Each is a function of a list of names of systems to leave out that returns a number.

(define-global *parts* '() "An alist of the fingerprint's parts, in reverse.")

(defmacro define-part (name (omit) &body body)
  "Defines the part NAME of the fingerprint. BODY returns an integer."
  `(setf *parts* (acons ,name (lambda (,omit) (declare (ignorable ,omit)) ,@body) (remove ,name *parts* :key #'car :test #'equal))))

(defmacro summing ((add) &body body)
  "The sum of the hashes with which BODY calls ADD."
  `(let ((sum 0))
     (declare (type (unsigned-byte 64) sum))
     (flet ((,add (hash) (setf sum (ldb (byte 64 0) (+ sum (the (unsigned-byte 64) hash))))))
       ,@body)
     sum))

(defun symbol-hash (symbol)
  "A hash of SYMBOL's name and home package."
  (let ((package (symbol-package symbol)))
    (mix (hash-string (symbol-name symbol)) (if package (hash-string (or (package-name package) "")) 7))))

(defun call-with-present-symbols (function)
  "Calls FUNCTION with every symbol that is present in a package, that package, and the symbol's
  status there."
  (dolist (package (list-all-packages))
    (with-package-iterator (next package :internal :external)
      (loop (multiple-value-bind (more symbol status) (next)
              (unless more (return))
              (funcall function symbol package status))))))

(defun call-with-home-symbols (function)
  "Calls FUNCTION once with every symbol that has a home package."
  (call-with-present-symbols (lambda (symbol package status)
                               (declare (ignore status))
                               (when (eq (symbol-package symbol) package)
                                 (funcall function symbol)))))

(define-part "packages" (omit)
  (summing (add)
    (dolist (package (list-all-packages))
      (let ((name (hash-string (package-name package))))
        (add (mix name (identity-hash package)))
        (dolist (nickname (package-nicknames package))
          (add (mix (mix name 1) (hash-string nickname))))
        (dolist (used (package-use-list package))
          (add (mix (mix name 2) (hash-string (package-name used)))))
        (dolist (shadowing (package-shadowing-symbols package))
          (add (mix (mix name 3) (symbol-hash shadowing))))
        (loop for (nickname . target) in (sb-ext:package-local-nicknames package)
              do (add (mix (mix name 4) (mix (hash-string nickname) (hash-string (package-name target))))))
        (add (mix (mix name 5) (if (sb-ext:package-locked-p package) 1 0)))
        (dolist (implemented (sb-ext:package-implements-list package))
          (add (mix (mix name 6) (hash-string (package-name implemented)))))
        (add (mix (mix name 7) (identity-hash (documentation package t))))))))

(define-part "symbols" (omit)
  (summing (add)
    (call-with-present-symbols
     (lambda (symbol package status)
       (add (mix (mix (identity-hash symbol) (symbol-hash symbol))
                 (mix (hash-string (package-name package)) (if (eq status :external) 1 2))))))))

(define-part "functions" (omit)
  (summing (add)
    (call-with-home-symbols
     (lambda (symbol)
       (when (fboundp symbol)
         (add (mix (symbol-hash symbol) (identity-hash (or (macro-function symbol) (fdefinition symbol))))))
       (let ((setf `(setf ,symbol)))
         (when (fboundp setf)
           (add (mix (mix (symbol-hash symbol) 1) (identity-hash (fdefinition setf))))))
       (let ((compiler-macro (compiler-macro-function symbol)))
         (when compiler-macro
           (add (mix (mix (symbol-hash symbol) 2) (identity-hash compiler-macro)))))))))

(define-part "variables" (omit)
  (summing (add)
    (call-with-home-symbols
     (lambda (symbol)
       (unless (or (keywordp symbol) (moving-p symbol) (not (boundp symbol)))
         ;; The symbol may have no global value, but only a binding in this thread.
         (let ((value (ignore-errors (sb-ext:symbol-global-value symbol))))
           (setf *objects-left* +objects-looked-into+)
           (add (mix (symbol-hash symbol) (content-hash value (if (system-symbol-p symbol) 0 3))))))))))

(define-part "properties" (omit)
  (summing (add)
    (call-with-home-symbols
     (lambda (symbol)
       (unless (eq (symbol-package symbol) (load-time-value (find-package "CONSORT")))
         (when (symbol-plist symbol)
           (add (mix (symbol-hash symbol) (content-hash (symbol-plist symbol) 2)))))))))

(define-part "compiler" (omit)
  (summing (add)
    (call-with-home-symbols
     (lambda (symbol)
       (map-symbol-info (lambda (kind value)
                          (add (mix (mix (symbol-hash symbol) kind) (content-hash value 1))))
                        symbol)))))

(defun class-hash (class)
  "A hash of the definition of CLASS."
  (let ((hash (identity-hash class)))
    (dolist (slot (sb-mop:class-direct-slots class))
      (setf hash (mix hash (identity-hash slot))))
    (dolist (super (sb-mop:class-direct-superclasses class))
      (setf hash (mix hash (identity-hash super))))
    (setf hash (mix hash (identity-hash (class-layout class))))
    (let ((sum 0))
      (dolist (sub (sb-mop:class-direct-subclasses class))
        (setf sum (ldb (byte 64 0) (+ sum (identity-hash sub)))))
      (mix hash sum))))

(define-part "classes" (omit)
  (summing (add)
    (call-with-home-symbols
     (lambda (symbol)
       (let ((class (find-class symbol nil)))
         (when (and class (not (eq (symbol-package symbol) (load-time-value (find-package "CONSORT")))))
           (add (mix (symbol-hash symbol) (class-hash class)))))))))

(define-part "methods" (omit)
  (summing (add)
    (flet ((look (name function)
             (when (typep function 'generic-function)
               (add (mix name (identity-hash (sb-mop:generic-function-method-combination function))))
               (dolist (method (sb-mop:generic-function-methods function))
                 (add (mix name (identity-hash method)))))))
      (call-with-home-symbols
       (lambda (symbol)
         (when (and (fboundp symbol) (not (macro-function symbol)) (not (special-operator-p symbol)))
           (look (symbol-hash symbol) (fdefinition symbol)))
         (let ((setf `(setf ,symbol)))
           (when (fboundp setf)
             (look (mix (symbol-hash symbol) 1) (fdefinition setf)))))))))

(defun all-settings ()
  "A list of the image's settings and those of each session."
  (cons *image-settings*
        (loop for session being the hash-values of *sessions*
              when (session-settings session) collect it)))

(define-part "features" (omit)
  (summing (add)
    (loop for feature in (append (global-value '*features*) (mapcan (lambda (settings) (copy-list (setting settings '*features*))) (all-settings)))
          for place from 1
          do (add (mix place (if (symbolp feature) (symbol-hash feature) (identity-hash feature)))))))

(define-part "readtable" (omit)
  (summing (add)
    (dolist (table (cons (global-value '*readtable*)
                         (mapcar (lambda (settings) (setting settings '*readtable*)) (all-settings))))
      (add (readtable-hash table)))))

(defun readtable-hash (table)
  (let ((hash (mix (identity-hash table) (hash-string (symbol-name (readtable-case table))))))
    (loop for code below 256
          for char = (code-char code)
          do (multiple-value-bind (function non-terminating) (get-macro-character char table)
               (when function
                 (setf hash (mix hash (mix code (mix (identity-hash function) (if non-terminating 1 0)))))
                 (when (ignore-errors (get-dispatch-macro-character char #\A table) t)
                   (loop for sub below 256
                         for macro = (get-dispatch-macro-character char (code-char sub) table)
                         when macro
                           do (setf hash (mix hash (mix sub (identity-hash macro)))))))))
    hash))

(define-part "policy" (omit)
  (summing (add)
    (dolist (settings (all-settings))
      (progv (and policy-name (list policy-name)) (and policy-name (list (setting settings policy-name)))
        (add (hash-string (with-standard-io-syntax
                            (prin1-to-string (list (sb-cltl2:declaration-information 'optimize) (sb-ext:restrict-compiler-policy))))))))))

(define-part "systems" (omit)
  (summing (add)
    (dolist (name (asdf:already-loaded-systems))
      (unless (member name omit :test #'string=)
        (add (hash-string name))))
    (dolist (name (asdf:registered-systems))
      (unless (member name omit :test #'string=)
        (add (mix 1 (mix (hash-string name) (identity-hash (asdf:registered-system name)))))))))

(define-part "modules" (omit)
  (summing (add)
    (dolist (module *modules*)
      (add (hash-string (string module))))))

(define-part "files" (omit)
  (summing (add)
    #+linux
    (loop for (fd . target) in (open-descriptors)
          do (add (mix fd (hash-string target))))))

(defun open-descriptors ()
  "An alist of this process's file descriptors and their targets, without the descriptor that reads
  the list itself."
  (loop for entry in (directory "/proc/self/fd/*" :resolve-symlinks nil)
        for fd = (ignore-errors (parse-integer (file-namestring entry)))
        for target = (and fd (ignore-errors (sb-posix:readlink entry)))
        when (and target (not (search "/proc/" target)))
          collect (cons fd target)))

(define-part "threads" (omit)
  (summing (add)
    (dolist (thread (sb-thread:list-all-threads))
      (let ((name (or (sb-thread:thread-name thread) "")))
        (unless (eql 0 (search "consort " name))
          (add (hash-string name)))))))

(defun hexadecimal (hash)
  (with-standard-io-syntax (format nil "~(~16,'0X~)" hash)))

(define-operation "fingerprint" :thread (id params)
  (let ((omit (coerce (param params "omit" 'vector :default #()) 'list))
        (all 0)
        (fields '()))
    (loop for (name . function) in (reverse *parts*)
          for hash = (funcall function omit)
          do (setf all (mix all hash)
                   fields (list* (hexadecimal hash) name fields)))
    (object "digest" (hexadecimal all) "parts" (cons :object (nreverse fields)))))
