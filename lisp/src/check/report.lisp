;;;; Reports from a copy to the host: lines of JSON over a socket that carries nothing else
;;;; (docs/wire.md, "A check's copy").

(in-package :consort)

(defconstant +report-descriptor+ 200 "The file descriptor of a copy's socket to the host. Code under
  check gets lower ones.")

(defstruct (report (:constructor make-report (descriptor)))
  "The socket's file descriptor, and the lines that wait to be sent: the first FILL of OCTETS."
  (descriptor 0 :type fixnum)
  (octets (make-array 16384 :element-type '(unsigned-byte 8)) :type octets)
  (fill 0 :type fixnum))

(defconstant +af-unix+ 1)
(defconstant +sock-stream+ 1)
(defconstant +sun-path-limit+ #+linux 107 #-linux 103
  "The maximum number of octets of a socket's path (sun_path), without the NUL at its end.")

(defun unix-socket-address (path)
  "Returns the octets of a sockaddr_un of PATH, and their number. Signals an error if PATH is too
  long."
  (let* ((name (sb-ext:string-to-octets path :external-format :utf-8))
         (end (+ 3 (length name)))
         (address (make-array end :element-type '(unsigned-byte 8) :initial-element 0)))
    (when (> (length name) +sun-path-limit+)
      (error "The socket's path is too long: ~A" path))
    #+linux (setf (aref address 0) +af-unix+)                     ; sa_family
    #-linux (setf (aref address 0) (+ 2 (length name)) (aref address 1) +af-unix+)
    (replace address name :start1 2)
    (values address end)))

(defun connect-to-host (path)
  "Connects +REPORT-DESCRIPTOR+ to the Unix socket at PATH, and returns the descriptor. Signals an
  error if the socket cannot be reached. Uses system calls, because Lisp's streams and sockets take
  locks."
  (multiple-value-bind (address end) (unix-socket-address path)
    (let ((descriptor (call-c "socket" sb-alien:int (sb-alien:int +af-unix+) (sb-alien:int +sock-stream+) (sb-alien:int 0))))
      (when (or (minusp descriptor)
                (minusp (with-pinned-objects (address)
                          (call-c "connect" sb-alien:int (sb-alien:int descriptor) (sb-alien:system-area-pointer (vector-sap address))
                                  (sb-alien:int end)))))
        (let ((message (system-message)))
          (unless (minusp descriptor) (sb-posix:close descriptor))
          (error "The host's socket ~A cannot be reached: ~A" path message)))
      (sb-posix:dup2 descriptor +report-descriptor+)
      (sb-posix:close descriptor)
      +report-descriptor+)))

(defun write-or-exit (report octets end)
  "Writes OCTETS up to END to the host. If the write fails, the host has closed the socket: then
  exits with code 0, as after a finished check."
  (unless (write-octets (report-descriptor report) octets 0 end)
    (exit-process 0)))

(defun flush-report (report)
  "Writes the buffered lines to the host."
  (write-or-exit report (report-octets report) (report-fill report))
  (setf (report-fill report) 0))

(defconstant +line-limit+ 1000000 
  "The maximum number of octets of a line. The host kills a copy whose line exceeds 1 MiB (LINE_LIMIT,
  server/src/checker/report.rs).")

(defun send-line (report value &key flush)
  "Writes VALUE as a line of JSON. The line may stay in the buffer unless FLUSH is true. A line of
  more than +LINE-LIMIT+ octets is shortened (FITTING-LINE)."
  (multiple-value-bind (octets end) (fitting-line value +line-limit+)
    (when (> (+ (report-fill report) end) (length (report-octets report)))
      (flush-report report))
    (cond ((> end (length (report-octets report)))
           (write-or-exit report octets end))
          (t
           (replace (report-octets report) octets :start1 (report-fill report) :end2 end)
           (incf (report-fill report) end)))
    (when flush (flush-report report))))

(defun span-json (start end)
  (vector start end))

(defun finding-json (finding)
  "The JSON object of FINDING, a Diagnostic of server/src/model/diagnostic.rs."
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
