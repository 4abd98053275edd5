;;;; The content of the files of systems when they were compiled or read in this image. ASDF
;;;; compares times in whole seconds. It takes a file for unchanged that was saved in the same
;;;; second in which it was compiled, or whose time was set back.

(in-package :consort)

(defstruct (file-state (:constructor make-file-state (digest facts second)))
  "The content of a file: its SHA-256, the system's facts about the file, and the second of Unix
  time at which these were read."
  (digest "" :type string) (facts '() :type list) (second 0 :type integer))

(define-global *compiled-files* (make-hash-table :test #'equal :synchronized t)
  "Maps the name of a source file, or of a file that defines systems, to its FILE-STATE when it was
  compiled or read.")

(defun unix-second ()
  (- (get-universal-time) +unix-epoch+))

(defun file-facts (name)
  "Returns the facts that change with the content of the file NAME: its size, its times and its
  inode."
  (let ((facts (sb-posix:stat name)))
    (list (sb-posix:stat-size facts) (sb-posix:stat-mtime facts) (sb-posix:stat-ctime facts) (sb-posix:stat-ino facts))))

(defun state-of-file (name)
  "The FILE-STATE of the file NAME; NIL if it cannot be read."
  (ignore-errors
   (let ((second (unix-second)) (facts (file-facts name)))
     (make-file-state (or (digest-of-file (sb-ext:parse-native-namestring name)) (return-from state-of-file nil)) facts second))))

(defun current-state (name state)
  "The current FILE-STATE of the file NAME; NIL if it cannot be read. It is STATE itself if the
  system's times show that nothing was written since. Otherwise the file is read."
  (let ((facts (ignore-errors (file-facts name))))
    (cond ((null facts) nil)
          ;; A change sets the time of change, which nobody can set back.
          ((and (equal facts (file-state-facts state)) (< (third facts) (file-state-second state))) state)
          (t (state-of-file name)))))

(defun same-content-p (name state)
  "Returns true if the content of the file NAME is that of STATE. A file that cannot be read counts
  as unchanged."
  (let ((now (current-state name state)))
    (or (null now)
        (eq now state)
        (and (equal (file-state-digest now) (file-state-digest state))
             (setf (gethash name *compiled-files*) now)
             t))))

(defun native-true-name (pathname)
  "The native name of the file PATHNAME, with links resolved; NIL if there is no such file."
  (let ((true (and pathname (ignore-errors (probe-file pathname)))))
    (and true (sb-ext:native-namestring true))))

(declaim (ftype function state-of-source written-since-p))
(defun call-noting-writes (name function)
  "Calls FUNCTION, which compiles or reads the file NAME, a native name. Warns if the file was
  written meanwhile. Two values: the file's FILE-STATE before, or NIL if it is not known, and true
  if the file was written."
  (let* ((source (state-of-source name))
         (state (or source (and name (state-of-file name))))
         (written nil))
    (funcall (the function function))
    (when (and source (written-since-p name source))
      (setf written t)
      (warn "~A was written while it was compiled or read, so it is not known which text the image has. Reload it once more." name))
    (values state written)))

(defun call-recording-content (pathname function)
  "Calls FUNCTION, which compiles or reads the file PATHNAME, and returns its values. Records the
  file's content, or, if the file was written meanwhile, that its content is not known."
  (let ((name (native-true-name pathname)) (values '()))
    (multiple-value-bind (state written)
        (call-noting-writes name (lambda () (setf values (multiple-value-list (funcall (the function function))))))
      (when state
        (setf (gethash name *compiled-files*)
              (if written (make-file-state "" '() (file-state-second state)) state))))
    (values-list values)))

(defun changed-content-p (pathname)
  "Returns true if the file PATHNAME was compiled or read in this image with another content."
  (let* ((name (native-true-name pathname)) (state (and name (gethash name *compiled-files*))))
    (and state (not (same-content-p name state)))))

;;; The methods are on classes above those that a library would name, because a library's methods
;;; would replace them (compile.lisp).

(defmethod asdf:perform :around ((operation asdf:define-op) (system asdf:parent-component))
  (call-recording-content (asdf:system-source-file system) (lambda () (call-next-method))))

(defmethod asdf:operation-done-p :around ((operation asdf/lisp-action:basic-compile-op) (component asdf:cl-source-file))
  (and (not (changed-content-p (asdf:component-pathname component))) (call-next-method)))

(defmethod asdf:operation-done-p :around ((operation asdf:define-op) (system asdf:parent-component))
  (and (not (changed-content-p (asdf:system-source-file system))) (call-next-method)))
