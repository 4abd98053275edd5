;;;; The sources as machines and systems read them on which no test runs: arm64, and systems other
;;;; than Linux.

(in-package :consort)

(defparameter *sources-of-lisp* (merge-pathnames "../src/" cl-user::*tests-directory*))

(defun forms-of-sources (features)
  "The forms of all sources, as they are read where *FEATURES* are FEATURES."
  (let ((*features* features) (*package* (find-package "CONSORT")))
    (loop for file in (directory (merge-pathnames "**/*.lisp" *sources-of-lisp*))
          append (with-open-file (in file :external-format :utf-8)
                   (loop for form = (read in nil in)
                         until (eq form in)
                         collect form)))))

(defun map-lists (function form)
  "Calls FUNCTION with each list in FORM that is a form or looks like one; not with lambda lists."
  (when (consp form)
    (funcall function form)
    (loop with definition = (member (car form) '(defun defmacro lambda))
          for rest = form then (cdr rest) for position from 0
          while (consp rest)
          unless (and definition (eql position (if (eq (car form) 'lambda) 1 2)))
            do (map-lists function (car rest)))))

(defun defined-names (forms)
  (let ((names (make-hash-table)))
    (map-lists (lambda (list)
                 (when (and (symbolp (car list)) (eql 0 (search "DEF" (symbol-name (car list)))) (consp (cdr list)) (symbolp (second list)))
                   (setf (gethash (second list) names) t)))
               (cons 'progn forms))
    names))

(defun functions-without-body (forms)
  "The names of the functions in FORMS that have a docstring and nothing else, because the reader left
  the rest out."
  (let ((found '()))
    (map-lists (lambda (list)
                 (when (and (eq (car list) 'defun) (eql 4 (ignore-errors (list-length list))) (stringp (fourth list)))
                   (push (second list) found)))
               (cons 'progn forms))
    found))

(defun local-names (forms)
  "The names that LET, FLET and the like bind in FORMS."
  (let ((names (make-hash-table)))
    (map-lists (lambda (list)
                 (when (and (member (car list) '(let let* flet labels macrolet)) (consp (cdr list)))
                   (dolist (binding (if (listp (second list)) (second list)))
                     (setf (gethash (if (consp binding) (car binding) binding) names) t))))
               (cons 'progn forms))
    names))

(defun names-used-undefined (forms here)
  "The names of operators in FORMS that only the forms HERE define."
  (let ((elsewhere (list (defined-names forms) (local-names forms))) (only-here (defined-names here)) (found '()))
    (map-lists (lambda (list)
                 (let ((name (if (and (eq (car list) 'function) (consp (cdr list))) (second list) (car list))))
                   (when (and (symbolp name) (gethash name only-here) (notany (lambda (names) (gethash name names)) elsewhere))
                     (pushnew name found))))
               (cons 'progn forms))
    found))

(deftest the-sources-are-whole-on-machines-without-tests
  (let ((here (forms-of-sources *features*)))
    (dolist (features (list (remove :linux *features*) (list* :arm64 (remove :x86-64 *features*)) (remove :x86-64 *features*)))
      (let ((forms (forms-of-sources features)))
        (is equal '() (functions-without-body forms))
        (is equal '() (names-used-undefined forms here))))))
