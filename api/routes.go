package api

import (
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
)

// Route describes a request and its response. The server, [Client] and the OpenAPI document share it.
type Route[Body, Answer any] struct {
	Pattern string // method and path with names in braces
	// Summary is a sentence for the OpenAPI document. Query lists the query parameters, separated by spaces.
	Summary, Query string
	// Act is the logged action, such as "queue paused". If its first word is message, task or process, the path names
	// one of these, otherwise a queue.
	Act   string
	Limit time.Duration // set if a request may take longer than [MaxWait]
}

// NoBody is the body of routes without one.
type NoBody struct{}

func readRoute[Answer any](pattern, summary string) Route[NoBody, Answer] {
	return Route[NoBody, Answer]{Pattern: pattern, Summary: summary}
}

func loggedRoute[Body, Answer any](pattern, summary, act string) Route[Body, Answer] {
	return Route[Body, Answer]{Pattern: pattern, Summary: summary, Act: act}
}

func (r Route[Body, Answer]) withQuery(names string) Route[Body, Answer] {
	r.Query = names
	return r
}

func (r Route[Body, Answer]) withLimit(limit time.Duration) Route[Body, Answer] {
	r.Limit = limit
	return r
}

const selectionQueries = "match attribute reason dead_since dead_until through"

// Routes of /api/v1.
var (
	GetCaller           = readRoute[Caller]("GET /api/v1/caller", "Identity and scopes of the caller.")
	GetStatus           = readRoute[Status]("GET /api/v1/status", "Full status of the environment.")
	GetEnvironment      = readRoute[Description]("GET /api/v1/environment", "Parts of the environment, with all settings.")
	GetExamination      = readRoute[doctor.Examination]("GET /api/v1/doctor", "Problems with settings, machine and servers, with remedies.")
	GetConfiguration    = readRoute[Configuration]("GET /api/v1/config", "Effective options, and where to change each.")
	GetHealth           = readRoute[health.Report]("GET /api/v1/health", "Status, color and causes.")
	GetScale            = readRoute[autoscale.Scale]("GET /api/v1/scale", "The backlog and the desired size.")
	GetScaleDecisions   = readRoute[ScaleDecisions]("GET /api/v1/scale/decisions", "The last scaling decisions.")
	GetVersions         = readRoute[VersionList]("GET /api/v1/versions", "Versions of the app, newest first.").withQuery("latest")
	GetInstances        = readRoute[Instances]("GET /api/v1/instances", "The known instances.")
	GetSeries           = readRoute[series.Curves]("GET /api/v1/series", "Time series of the last minutes or hours.").withQuery("range")
	GetDeliveries       = readRoute[DeliveryList]("GET /api/v1/deliveries", "The most recent deliveries, newest first.").withQuery("limit")
	GetOutcome          = readRoute[Delivery]("GET /api/v1/messages/{id}/outcome", "The latest delivery of a message; can wait for it.").withQuery("wait")
	GetExchange         = loggedRoute[NoBody, Exchange]("GET /api/v1/messages/{id}/exchange", "The latest request and its response.", "message read, with request and response").withQuery("body")
	RecordExchanges     = loggedRoute[RecordRequest, Recording]("POST /api/v1/exchanges", "Record exchanges for a while.", "requests recorded")
	GetEvents           = readRoute[EventList]("GET /api/v1/events", "Events, newest first, or those after an ID.").withQuery("after before limit kind match since until")
	GetLogs             = readRoute[LineList]("GET /api/v1/logs", "Log lines, newest first, or those after an ID.").withQuery("after before limit process match level until")
	GetQueues           = readRoute[QueueList]("GET /api/v1/queues", "The embedded queues.")
	GetQueue            = readRoute[Queue]("GET /api/v1/queues/{name}", "One queue with its attributes.")
	CountMessages       = loggedRoute[NoBody, Total]("GET /api/v1/queues/{name}/count", "Number of matching messages.", "bodies searched").withQuery(selectionQueries + " wait body")
	GetMessages         = loggedRoute[NoBody, MessagePage]("GET /api/v1/queues/{name}/messages", "One page of messages, oldest first.", "bodies read").withQuery(selectionQueries + " state after limit body")
	GetMessage          = loggedRoute[NoBody, Message]("GET /api/v1/queues/{name}/messages/{id}", "One message.", "message read").withQuery("body")
	GetReasons          = readRoute[ReasonList]("GET /api/v1/queues/{name}/reasons", "Failure reasons of the messages, grouped.")
	GetTasks            = readRoute[TasksStatus]("GET /api/v1/tasks", "The periodic tasks and their leader.")
	GetTaskHistory      = readRoute[RunList]("GET /api/v1/tasks/{name}/history", "The runs of a task, newest first.").withQuery("limit")
	GetHistory          = readRoute[RunList]("GET /api/v1/history", "The runs of all tasks, newest first.").withQuery("limit")
	CreateQueue         = loggedRoute[Creation, Created]("POST /api/v1/queues", "Create a queue.", "queue created")
	DeleteQueue         = loggedRoute[NoBody, Count]("DELETE /api/v1/queues/{name}", "Delete a queue with its messages.", "queue deleted").withQuery("confirm")
	SendMessages        = loggedRoute[SendRequest, SendAnswer]("POST /api/v1/queues/{name}/messages", "Send up to ten messages.", "messages sent")
	ReceiveMessages     = loggedRoute[ReceiveRequest, ReceivedList]("POST /api/v1/queues/{name}/receive", "Receive messages like a consumer.", "messages received")
	AcknowledgeMessages = loggedRoute[Receipts, Count]("POST /api/v1/queues/{name}/acknowledge", "Delete received messages.", "messages acknowledged")
	PauseQueue          = loggedRoute[Reason, Paused]("POST /api/v1/queues/{name}/pause", "Stop receiving from a queue.", "queue paused")
	ResumeQueue         = loggedRoute[Reason, Paused]("POST /api/v1/queues/{name}/resume", "Resume receiving from a queue.", "queue resumed")
	PurgeQueue          = loggedRoute[Confirmation, Count]("POST /api/v1/queues/{name}/purge", "Delete all messages in a queue.", "queue purged")
	MoveMessages        = loggedRoute[MoveRequest, Count]("POST /api/v1/queues/{name}/move", "Move messages to another queue.", "messages moved")
	StartRedrive        = loggedRoute[RedriveRequest, MoveTask]("POST /api/v1/queues/{name}/redrive", "Start moving dead letters to their source queues, or to a given queue.", "redrive started")
	GetRedrive          = readRoute[MoveTask]("GET /api/v1/queues/{name}/redrive", "The latest move task of a dead-letter queue.")
	CancelRedrive       = loggedRoute[NoBody, MoveTask]("DELETE /api/v1/queues/{name}/redrive", "Cancel the running move task.", "redrive cancelled")
	DeleteMessages      = loggedRoute[Deletion, Deleted]("POST /api/v1/queues/{name}/delete", "Delete messages, or start deleting dead letters.", "messages deleted")
	DeleteMessage       = loggedRoute[NoBody, Count]("DELETE /api/v1/queues/{name}/messages/{id}", "Delete one message.", "message deleted")
	RetryMessage        = loggedRoute[NoBody, Placed]("POST /api/v1/queues/{name}/messages/{id}/retry", "Make one message visible at once.", "message retried")
	DelayMessage        = loggedRoute[DelayRequest, Placed]("POST /api/v1/queues/{name}/messages/{id}/delay", "Hide one message for a period from now.", "message delayed")
	EditMessage         = loggedRoute[EditRequest, SendAnswer]("POST /api/v1/queues/{name}/messages/{id}/edit", "Replace a dead letter with an edited message.", "message edited and sent again")
	RunTask             = loggedRoute[NoBody, TaskRun]("POST /api/v1/tasks/{name}/run", "Enqueue one run of a task.", "task run enqueued")
	PauseTask           = loggedRoute[Reason, TaskPaused]("POST /api/v1/tasks/{name}/pause", "Pause a task: its runs are skipped.", "task paused")
	ResumeTask          = loggedRoute[NoBody, TaskPaused]("POST /api/v1/tasks/{name}/resume", "Resume a task.", "task resumed")
	Deploy              = loggedRoute[DeployRequest, DeployResult]("POST /api/v1/deploy", "Deploy a new version of the app.", "app deployed").withLimit(MaxDeploy)
	AbortDeploy         = loggedRoute[NoBody, Deployment]("POST /api/v1/deploy/abort", "Abort the deployment in progress.", "deployment aborted").withLimit(MaxDeploy)
	Rollback            = loggedRoute[RollbackRequest, DeployResult]("POST /api/v1/rollback", "Roll back to a previous version.", "app rolled back").withLimit(MaxDeploy)
	RestartProcess      = loggedRoute[NoBody, RestartedProcess]("POST /api/v1/processes/{name}/restart", "Restart one process of the app.", "process restarted").withLimit(MaxDeploy)
	PreviewSettings     = loggedRoute[SettingsChange, SettingsPreview]("POST /api/v1/config/preview", "Preview a change of settings.", "settings change previewed")
	ChangeSettings      = loggedRoute[SettingsChange, SettingsPreview]("POST /api/v1/config", "Change settings, for all instances or in the settings file.", "settings changed")
	Reload              = loggedRoute[NoBody, ReloadResult]("POST /api/v1/reload", "Apply changes of the files.", "settings reloaded").withLimit(MaxDeploy)
	PauseAll            = loggedRoute[Reason, Paused]("POST /api/v1/quiet", "Pause receiving from every queue.", "all queues paused")
	ResumeAll           = loggedRoute[Reason, Paused]("POST /api/v1/resume", "Resume receiving from every queue.", "all queues resumed")
	Drain               = loggedRoute[DrainRequest, Drained]("POST /api/v1/drain", "Drain and stop the environment.", "drain requested")
	NewLogin            = loggedRoute[LoginRequest, LoginLink]("POST /api/v1/login", "Create a login link for one browser.", "login link created")
	GetDocument         = readRoute[any]("GET /api/v1/openapi.json", "This document.")
)
