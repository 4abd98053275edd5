;;;; Regular files. Reading a pipe or a device in the place of a source file might wait for ever.

(in-package :consort)

(define-condition no-regular-file (file-error) ()
  (:report (lambda (condition stream)
             (format stream "~A is no regular file, and is not read."
                     (sb-ext:native-namestring (file-error-pathname condition))))))

(defun irregular-p (path)
  "Returns true if there is something at PATH, a pathname, that is neither a regular file nor a link
  to one."
  (let ((mode (handler-case (sb-posix:stat-mode (sb-posix:stat (sb-ext:native-namestring (merge-pathnames path))))
                (sb-posix:syscall-error () nil))))
    (and mode (/= (logand sb-posix:s-ifmt mode) sb-posix:s-ifreg))))

(defun ensure-regular (path)
  "Signals NO-REGULAR-FILE if there is something else at PATH."
  (when (irregular-p path)
    (error 'no-regular-file :pathname path)))
