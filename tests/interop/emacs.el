;;; emacs.el --- abridged from jsonrpc.el  -*- lexical-binding: t; coding: utf-8 -*-

;; The client library of Emacs' language servers, in Emacs since 27: emacs -Q --batch -l emacs.el

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)

(defun abridged-start (on-event complete &optional environment)
  "Start a daemon; ON-EVENT is called with the params of each `session/event'.
COMPLETE runs a model for the params of `llm/complete'.
ENVIRONMENT is added to the environment of the daemon."
  (let* ((process-environment (append environment process-environment))
         (daemon
          (make-instance
           'jsonrpc-process-connection
           :name "abridged"
           :process (lambda ()
                      (make-process :name "abridged"
                                    :command (list (or (getenv "ABRIDGED_BIN") "abridged") "serve")
                                    ;; A pipe leaves bytes as they are; a terminal need not.
                                    :connection-type 'pipe
                                    ;; JSON is UTF-8, whatever the locale is.
                                    :coding 'utf-8-emacs-unix
                                    :noquery t
                                    ;; jsonrpc.el looks for the log in a buffer of this name.
                                    :stderr (get-buffer-create "*abridged stderr*")))
           ;; Its own log of all messages costs more time than the messages.
           :events-buffer-scrollback-size 0
           ;; What is returned is the answer. After an error the daemon goes on without us.
           :request-dispatcher (lambda (_daemon method params)
                                 (if (eq method 'llm/complete)
                                     (list :message (funcall complete params))
                                   (jsonrpc-error :code -32601 :message "no such request")))
           :notification-dispatcher (lambda (_daemon method params)
                                      (when (eq method 'session/event)
                                        (funcall on-event params))))))
    (abridged-call daemon 'initialize
                   `( :protocolVersion 1
                      :clientInfo (:name "emacs" :version ,emacs-version)
                      :processId ,(emacs-pid)
                      ;; A vector without elements: a plist without them would be null.
                      :capabilities (:llm [])))
    daemon))

(defun abridged-call (daemon method &optional params)
  "Send DAEMON a request of METHOD with PARAMS and return its result.
Not by `jsonrpc-request': up to Emacs 29 that leaves by a `throw' as soon as the
answer is there, and the events that came in the same piece of output lie in the
process buffer until there is more output."
  (let (result failure done)
    (jsonrpc-async-request daemon method params
                           :success-fn (lambda (it) (setq result it done t))
                           :error-fn (lambda (it) (setq failure it done t))
                           :timeout-fn (lambda () (setq failure '(:message "no answer") done t)))
    (abridged-wait (lambda () done))
    (if failure (error "%s: %s" method (plist-get failure :message)) result)))

(defun abridged-wait (condition)
  "Take what comes until CONDITION holds, for at most a minute."
  (with-timeout (60 (error "Waited in vain for the daemon"))
    (while (not (funcall condition))
      (accept-process-output nil 0.1))))

(defun abridged-get (object &rest keys)
  "Follow KEYS into OBJECT, a plist as jsonrpc.el makes them."
  (cl-reduce #'plist-get keys :initial-value object))

(defun turn (number)
  "A question and its answer with NUMBER, as a host with its own agent loop reports them."
  (let ((text (if (= number 50)
                  (make-string 45000 ?x)
                (let ((step (format "Step %d: Größe, 東京 and 🚢 stay as they are. " number)))
                  (apply #'concat (make-list 10 step))))))
    ;; Arrays are vectors.
    `[(:role "user" :content ,(format "What is step %d?" number))
      ( :role "assistant"
        :content [(:type "text" :text ,text)]
        :usage ( :input ,(* 100 number) :output 50 :cacheRead 0 :cacheWrite 0
                 :totalTokens ,(+ 50 (* 100 number)))
        :stopReason "stop")]))

(defconst summaries
  '(("compaction" . "## Goal\nGo through the steps.\n\n## Progress\n### Done\n- [x] the first ones")
    ("turn_prefix" . "## Original Request\nThe next step.\n\n## Early Progress\n- begun")
    ("short_summary" . "The first steps are done. More will come."))
  "What the model below writes, by purpose.")

(defun complete (params)
  "Run a model for PARAMS; this one writes summaries and nothing else."
  (check (equal (plist-get params :model) '(:provider "editor" :id "writer")) "another model is asked")
  `( :role "assistant"
     :content [(:type "text" :text ,(cdr (assoc (plist-get params :purpose) summaries)))]
     ;; No usage: nobody knows it here. What the provider reported stands there otherwise.
     :stopReason "stop"))

(defun large ()
  "A message whose tokens take a while to count.
A compaction waits for that, long enough to change one's mind."
  `[(:role "user" :content ,(apply #'concat (make-list 200000 "Größe, 東京, 🚢\n")))])

(defun check (holds what)
  "End with WHAT, loudly, unless it HOLDS."
  (unless holds (error "emacs: %s" what)))

(defun check-events (events session completed)
  "Check EVENTS: no gaps, one end for each start, and of SESSION what its last events were.
COMPLETED are the compactions that were."
  (let ((last (make-hash-table :test #'equal)) (whole 0) (announced 0) open ends types)
    (dolist (params events)
      (cl-destructuring-bind (&key sessionId epoch seq operationId event &allow-other-keys) params
        (let ((key (concat sessionId " " epoch)) (type (plist-get event :type)))
          (check (= seq (1+ (gethash key last (1- seq)))) (format "a gap before event %d of %s" seq key))
          (puthash key seq last)
          (cond ((equal type "compaction_start") (push operationId open))
                ((equal type "compaction_end")
                 (check (member operationId open) (format "an end without its start, or a second: %S" params))
                 (setq open (delete operationId open))
                 (push (plist-get event :outcome) ends)
                 (check (eq (equal (car ends) "completed") (and (member operationId completed) t))
                        "the wrong one was completed")))
          (when (equal sessionId session) (push type types))
          (let ((content (abridged-get event :entry :message :content)))
            (when (and (vectorp content) (equal (abridged-get (aref content 0) :text) (make-string 45000 ?x)))
              (cl-incf whole)))
          (when (and (equal type "entry_appended") (not (plist-get event :entry)))
            (cl-incf announced)))))
    (check (null open) "a start without an end")
    (check (= (hash-table-count last) 3) "not the events of three sessions")
    ;; The request that was taken back ends as cancelled, or never began.
    (check (member (reverse ends) '(("cancelled" "completed" "completed")
                                     ("cancelled" "cancelled" "completed" "completed")))
           (format "they ended as %S" (reverse ends)))
    (check (equal (seq-take types 2) '("settled" "status_changed"))
           (format "the last events are %S" (seq-take types 2)))
    (check (= whole 1) "45,000 characters did not come as a whole")
    (check (= announced 2) "the large messages are not announced by their type alone")))

(defun main (home)
  "Go through everything with a daemon whose things are in HOME."
  (let* ((events '())
         (daemon (abridged-start (lambda (params) (push params events))
                                 #'complete
                                 (list (concat "ABRIDGED_DATA_DIR=" home "/data")
                                       (concat "ABRIDGED_CONFIG_DIR=" home "/config")
                                       "ABRIDGED_DISABLE_AUTOCOMPACT=1")))
         (session (abridged-get (abridged-call daemon 'session/new `(:cwd ,home)) :session :sessionId))
         (end-of (lambda (operation)
                   (let (end)
                     (abridged-wait
                      (lambda ()
                        (setq end (cl-find-if (lambda (params)
                                                (and (equal (plist-get params :operationId) operation)
                                                     (equal (abridged-get params :event :type) "compaction_end")))
                                              events))))
                     (plist-get end :event))))
         (append (lambda (session messages)
                   (abridged-call daemon 'session/append `(:sessionId ,session :messages ,messages)))))
    (dotimes (number 80)
      (funcall append session (turn number)))

    ;; Cancelled by its session: the cancel is sent right behind it.
    (funcall append session (large))
    (let (compacting)
      (jsonrpc-async-request daemon 'session/compact `(:sessionId ,session)
                             :success-fn (lambda (answer) (setq compacting (plist-get answer :operationId))))
      (let ((cancelled (plist-get (abridged-call daemon 'session/cancel `(:sessionId ,session)) :cancelled)))
        (check (= (length cancelled) 1) "the cancel found nothing")
        (let ((operation (plist-get (aref cancelled 0) :operationId)))
          (check (equal (plist-get (funcall end-of operation) :outcome) "cancelled") "a cancelled compaction went on")
          (check (equal compacting operation) "the cancel found something else"))))

    ;; Cancelled by taking the request back. It has the last id that was given away; Emacs 28 does not return it.
    (funcall append session (large))
    (let (outcome)
      (jsonrpc-async-request daemon 'session/compact `(:sessionId ,session :wait t)
                             :success-fn (lambda (answer) (setq outcome (plist-get answer :outcome)))
                             :error-fn (lambda (failure) (setq outcome (plist-get failure :code))))
      (jsonrpc-notify daemon '$/cancelRequest `(:id ,(jsonrpc--next-request-id daemon)))
      (abridged-wait (lambda () outcome))
      ;; The normal answer of a compaction that was cancelled, or, where it had not begun, an error.
      (check (member outcome '("cancelled" -32800)) (format "what was taken back ended as %s" outcome)))

    ;; Done: the answer gives the id, the end is an event.
    (dotimes (number 19)
      (funcall append session (turn (+ 80 number))))
    (check (>= (abridged-get (funcall append session (turn 99)) :usage :contextTokens) 9950)
           "the provider's count is not taken over")
    (let* ((answer (abridged-call daemon 'session/compact `(:sessionId ,session :keepRecentTokens 2000)))
           (operation (plist-get answer :operationId))
           (end (funcall end-of operation))
           (context (abridged-call daemon 'session/context `(:sessionId ,session)))
           (messages (plist-get context :messages))
           (newest (aref messages (1- (length messages)))))
      (check (equal (plist-get end :outcome) "completed") (format "the compaction ended with %S" end))
      (check (equal (plist-get context :compactionEntryId) (abridged-get end :result :entryId))
             "the context is not the compacted one")
      (check (equal (plist-get newest :content) (plist-get (aref (turn 99) 1) :content))
             "the newest answer is not as it was")

      ;; A file from elsewhere opens where it lies.
      (let ((file (concat home "/elsewhere.jsonl")))
        (with-temp-file file
          (insert (json-serialize `( :type "session" :version 3 :id "elsewhere"
                                     :timestamp "2026-01-01T00:00:00.000Z" :cwd ,home))
                  "\n"))
        (let ((other (abridged-get (abridged-call daemon 'session/load `(:path ,file)) :session :sessionId)))
          (funcall append other (turn 1))))

      ;; A session whose model only we can run: its summary is asked of us.
      (let* ((new (abridged-call daemon 'session/new `(:cwd ,home :model "editor/writer")))
             (ours (abridged-get new :session :sessionId)))
        (dotimes (number 20)
          (funcall append ours (turn number)))
        (let* ((answer (abridged-call daemon 'session/compact `(:sessionId ,ours :keepRecentTokens 1000 :wait t)))
               (result (plist-get answer :result))
               (spent (abridged-call daemon 'session/entries `(:sessionId ,ours :types ["usage"]))))
          (check (equal (plist-get result :method) "llm") (format "no summary of ours: %S" result))
          (check (string-match-p "Go through the steps\\." (plist-get result :summary)) "another summary than ours")
          (check (equal (plist-get result :shortSummary) (cdr (assoc "short_summary" summaries))) "another short one")
          (check (>= (length (plist-get spent :entries)) 2) "its requests are not noted")
          (setq operation (list operation (plist-get answer :operationId)))))

      ;; `jsonrpc-shutdown' would kill it: it is asked to go first.
      (abridged-call daemon 'shutdown)
      (jsonrpc-notify daemon 'exit nil)
      (abridged-wait (lambda () (not (jsonrpc-running-p daemon))))
      (check (eq 0 (process-exit-status (jsonrpc--process daemon))) "the daemon did not end well")
      (check-events (reverse events) session operation)
      (princ (format "emacs: ok, %d events\n" (length events))))))

(let ((home (make-temp-file "abridged-" t)) failure)
  (condition-case oops
      (main home)
    (error (setq failure (error-message-string oops))))
  (delete-directory home t)
  (when failure
    (message "%s" failure)
    (kill-emacs 1)))

;;; emacs.el ends here
