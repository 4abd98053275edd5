;;;; `load-file`: loads the init file, and files again after a crash.

(in-package :consort)

(define-operation "load-file" :thread (id params)
  (let* ((path (param params "path" 'string))
         (if-missing (param params "if_missing" 'string :default "error"))
         (must-exist (cond ((string= if-missing "error") t)
                           ((string= if-missing "ignore") nil)
                           (t (refuse "bad-params" "if_missing must be error or ignore, not ~S" if-missing))))
         (pathname (sb-ext:parse-native-namestring path)))
    (nth-value 1 (evaluate-alone id (lambda ()
                                      (load pathname :if-does-not-exist must-exist))
                                 :keep t))))
