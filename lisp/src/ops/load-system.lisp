;;;; `load-system`: loads a system through ASDF, or through Quicklisp if ASDF does not find a system
;;;; and the user has Quicklisp.

(in-package :consort)

;;; Finding systems: the workspace's .asd files come before the user's own configuration of ASDF.


(defun asd-file-for (name asd-files)
  "The file among ASD-FILES, pathnames, whose name is that of the system NAME. NIL for a part of a
  package-inferred system, which ASDF makes from a file."
  (let* ((primary (asdf:primary-system-name name))
         (system (and (string/= name primary) (asdf:registered-system primary))))
    (and (not (contrib-p primary))
         (not (typep system 'asdf:package-inferred-system))
         (find-if (lambda (file) (and (equal primary (pathname-name file)) (not (irregular-p file)))) asd-files))))

(defun call-with-asd-files (asd-files function)
  "Calls FUNCTION in such a way that ASDF finds the systems of ASD-FILES first."
  (let ((asdf:*system-definition-search-functions*
          (cons (lambda (name) (asd-file-for name asd-files)) asdf:*system-definition-search-functions*)))
    (funcall function)))

;;; ASDF searches for a system again when it is asked for it, even long after the system was loaded.
;;; A system that was loaded from the workspace must then not be replaced by an installed one of the
;;; same name.

(define-global *workspace-asd-files* '() "The workspace's .asd files, as pathnames, which the host
  has reported last.")

(define-global *workspace-root* nil "The workspace's directory, once the host has reported it.")

(define-global *workspace-directories* '() "The directories of the workspace's .asd files, and the workspace itself.")

(defconstant +workspace-directories+ 64 "The maximum number of directories that are searched for new
  files.")

(defun new-asd-file-for (name)
  "A file for the system NAME that was made after the host reported the workspace's files: beside
  one of them, or in the workspace itself."
  (let ((primary (asdf:primary-system-name name)))
    (loop for directory in *workspace-directories*
          for file = (make-pathname :name primary :type "asd" :version nil :defaults directory)
          when (and (asd-file-for name (list file)) (uiop:file-exists-p file))
            return file)))

(defun find-workspace-system (name)
  "For ASDF: the workspace's file that defines the system NAME."
  (let ((file (asd-file-for name *workspace-asd-files*)))
    (if file
        (probe-file file)
        (ignore-errors (new-asd-file-for name)))))

(defun prefer-workspace-systems (asd-files &optional (root *workspace-root*))
  "From now on, makes ASDF find the systems of ASD-FILES first, and those of new files beside them
  and in the directory ROOT."
  (unless (equal asd-files *workspace-asd-files*)
    (sb-ext:atomic-incf (car *asdf-actions*)))
  (setf *workspace-asd-files* asd-files
        *workspace-root* root)
  (let ((directories (remove-duplicates (mapcar #'uiop:pathname-directory-pathname asd-files) :test #'equal :from-end t)))
    (setf *workspace-directories*
          (loop for directory in (if root (cons root directories) directories)
                repeat +workspace-directories+
                collect directory)))
  (pushnew 'find-workspace-system asdf:*system-definition-search-functions*))

;;; The host reports the workspace's files when the image is ready, and again before an evaluation
;;; if they have changed, so that ASDF:LOAD-SYSTEM finds them.

(defun foreign-systems ()
  "The JSON of the loaded systems that have the name of one of the workspace's systems and come from
  another file."
  (loop for name in (asdf:already-loaded-systems)
        for ours = (and (string= name (asdf:primary-system-name name)) (find-workspace-system name))
        for file = (and ours (let ((system (asdf:registered-system name))) (and system (asdf:system-source-file system))))
        when (and file (not (equal (ignore-errors (truename file)) (ignore-errors (truename ours)))))
          collect (object "system" name
                          "file" (sb-ext:native-namestring file)
                          "workspace" (sb-ext:native-namestring ours))))

(define-global *reported-foreign* '() "The names of the foreign systems about which an evaluation
  was warned.")

(defun foreign-system-warnings ()
  "Warnings about loaded systems that are not the workspace's. Each is given only once."
  (loop for system in (ignore-errors (foreign-systems))
        for name = (field system "system")
        unless (member name *reported-foreign* :test #'string=)
          do (push name *reported-foreign*)
          and collect (format nil "The loaded system ~A is ~A, not the workspace's ~A. To load that one: (asdf:load-asd ~S), then (asdf:load-system ~S :force t)."
                              name (field system "file") (field system "workspace") (field system "workspace") name)))

(define-operation "workspace-systems" :thread (id params)
  (prefer-workspace-systems (map 'list #'sb-ext:parse-native-namestring (param params "asd_files" 'vector :default #()))
                            (uiop:ensure-directory-pathname (sb-ext:parse-native-namestring (param params "root" 'string))))
  (object))

(defun find-system-in (id system asd-files)
  "Makes SYSTEM known to ASDF. If no file has its name, searches its definition in ASD-FILES. Files
  that are loaded for that are reported as progress of the request ID."
  (or (asdf:find-system system nil)
      (find-among-definitions system asd-files
                              (lambda (file)
                                (send-event "progress" "id" id "message" (format nil "looking into ~A" (file-namestring file))
                                                       "done" 0 "total" :null)))))

;;; Progress

(defvar *progress* nil "In the thread that loads a system for the host: the function that is called
  with each action of ASDF.")

(defvar *loaded-files* nil "While the host has a system loaded: a list of one element, the list of
  the source files that were loaded.")

;; ASDF itself has a method on its classes, which makes the directories for its output.
(defmethod asdf:perform :before (operation component)
  (sb-ext:atomic-incf (car *asdf-actions*))
  (when (and (typep operation '(or asdf:compile-op asdf:load-source-op)) (typep component 'asdf:source-file))
    (mapc #'ensure-regular (ignore-errors (asdf:input-files operation component))))
  (when (and *loaded-files* (typep operation '(or asdf:load-op asdf:load-source-op)) (typep component 'asdf:cl-source-file))
    (push (sb-ext:native-namestring (asdf:component-pathname component)) (first *loaded-files*)))
  (when (and *progress* (typep operation 'asdf:operation) (typep component 'asdf:component))
    (funcall *progress* operation component)))

(defun planned-actions (system)
  "Returns the number of actions that loading SYSTEM takes if it is not forced; NIL if ASDF cannot
  tell."
  (let ((make-plan (find-symbol "MAKE-PLAN" "ASDF"))
        (plan-actions (find-symbol "PLAN-ACTIONS" "ASDF")))
    (when (and make-plan plan-actions)
      (length (funcall plan-actions (funcall make-plan nil (asdf:make-operation 'asdf:load-op) (asdf:find-system system)))))))

(defun action-text (operation component)
  "The text of an action, such as `compiling cl-ppcre/api`."
  (format nil "~:[loading~;compiling~] ~{~A~^/~}"
          (typep operation 'asdf:compile-op)
          (remove nil (asdf:component-find-path component))))

(defun progress-reporter (id total)
  (let ((done 0))
    (lambda (operation component)
      (incf done)
      (when (typep component '(or asdf:source-file asdf:system))
        (send-event "progress" "id" id "message" (action-text operation component)
                               "done" (if total (min done total) done) "total" (or-null total))))))

;;; Loading

(defun load-with-asdf (id system asd-files force)
  (prefer-workspace-systems asd-files)
  (call-with-asd-files
   asd-files
   (lambda ()
     (find-system-in id system asd-files)
     (let ((*progress* (progress-reporter id (if force nil (planned-actions system)))))
       (asdf:load-system system :force force)))))

(defun quickload-function ()
  "The symbol QL:QUICKLOAD if the user has Quicklisp; otherwise NIL."
  (let* ((package (find-package "QL"))
         (symbol (and package (find-symbol "QUICKLOAD" package))))
    (and symbol (fboundp symbol) symbol)))

(defun load-with-quicklisp-fallback (id system asd-files force)
  "Loads SYSTEM. Uses Quicklisp if a system is missing and the user has Quicklisp."
  (let ((quickload (quickload-function)))
    (if quickload
        (handler-case (load-with-asdf id system asd-files force)
          (asdf:missing-component ()
            (send-event "progress" "id" id "message" (format nil "asking Quicklisp for ~A" system) "done" 0 "total" :null)
            (call-with-asd-files asd-files (lambda () (funcall quickload system :silent t)))))
        (load-with-asdf id system asd-files force))))

(define-operation "load-system" :thread (id params)
  (let ((system (string-downcase (param params "system" 'string)))
        (asd-files (map 'list #'sb-ext:parse-native-namestring (param params "asd_files" 'vector :default #())))
        (force (param params "force" 'boolean :default nil))
        (allowed (allowed-param params))
        (files (list '())))
    (multiple-value-bind (how outcome) (evaluate-alone id (lambda ()
                                                            (let ((*loaded-files* files))
                                                              (call-allowing allowed (lambda () (load-with-quicklisp-fallback id system asd-files force))))))
      (append outcome (list "loaded" (bool (eq how :ok))
                            "files" (coerce (reverse (first files)) 'vector))))))
