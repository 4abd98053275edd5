;;;; From a copy to the host: lines of JSON over a socket of their own (docs/wire.md, "A check's
;;;; copy").

(in-package :consort)

(defconstant +report-descriptor+ 200 "The number of the socket in the copy: out of the way of what code opens.")

(defstruct (report (:constructor make-report (descriptor)))
  "Lines that wait to be sent: OCTETS up to FILL."
  (descriptor 0 :type fixnum)
  (octets (make-array 16384 :element-type '(unsigned-byte 8)) :type octets)
  (fill 0 :type fixnum))

(defun connect-to-host (path)
  "A descriptor connected to the Unix socket at PATH. Made with system calls: streams and sockets of
  Lisp take locks."
  (let* ((name (sb-ext:string-to-octets path :external-format :utf-8))
         (address (make-array 110 :element-type '(unsigned-byte 8) :initial-element 0))
         ;; AF_UNIX, SOCK_STREAM.
         (descriptor (call-c "socket" sb-alien:int (sb-alien:int 1) (sb-alien:int 1) (sb-alien:int 0))))
    (when (> (length name) 107)
      (error "The socket's path is too long: ~A" path))
    #+linux (setf (aref address 0) 1)                             ; sa_family
    #-linux (setf (aref address 0) (+ 2 (length name)) (aref address 1) 1)
    (replace address name :start1 2)
    (when (or (minusp descriptor)
              (minusp (with-pinned-objects (address)
                        (call-c "connect" sb-alien:int (sb-alien:int descriptor) (sb-alien:system-area-pointer (vector-sap address))
                                (sb-alien:int (+ 3 (length name)))))))
      (error "The host's socket ~A cannot be reached: ~A" path (system-message)))
    (sb-posix:dup2 descriptor +report-descriptor+)
    (sb-posix:close descriptor)
    +report-descriptor+))

(defun flush-report (report)
  "Sends the lines that wait. Ends this process when the host is gone."
  (unless (write-octets (report-descriptor report) (report-octets report) 0 (report-fill report))
    (exit-process 0))
  (setf (report-fill report) 0))

(defconstant +line-limit+ 1000000 "Octets of a line. The host ends a copy that sends one of more than a MiB.")

(defun send-line (report value &key flush)
  "Sends VALUE as a line, now if FLUSH, else when enough waits. One that is too long has its long
  texts and lists cut."
  (multiple-value-bind (octets end) (fitting-line value +line-limit+)
    (when (> (+ (report-fill report) end) (length (report-octets report)))
      (flush-report report))
    (cond ((> end (length (report-octets report)))
           (unless (write-octets (report-descriptor report) octets 0 end) (exit-process 0)))
          (t
           (replace (report-octets report) octets :start1 (report-fill report) :end2 end)
           (incf (report-fill report) end)))
    (when flush (flush-report report))))

(defun span-json (start end)
  (vector start end))

(defun finding-json (finding)
  "FINDING as a Diagnostic of server/src/model/diagnostic.rs."
  (let ((toplevel (finding-toplevel finding)))
    (object "span" (span-json (finding-start finding) (finding-end finding))
            "severity" (string-downcase (finding-severity finding))
            "code" (finding-code finding)
            "message" (finding-message finding)
            "condition" (or-null (finding-condition finding))
            "form" (or-null (finding-form finding))
            "toplevel" (if toplevel (span-json (car toplevel) (cdr toplevel)) :null)
            "tags" (mapcar #'string-downcase (finding-tags finding))
            "related" (loop for (start end message file) in (finding-related finding)
                            collect (object "file" (or-null file) "span" (span-json start end) "message" message))
            "data" (if (finding-data finding)
                       (apply #'object (loop for (key value) on (finding-data finding) by #'cddr
                                             collect key collect (or-null value)))
                       :null))))
