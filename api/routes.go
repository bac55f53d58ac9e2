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
	// Act is the logged action, such as "queue paused". Its first word tells what the path names: a message, task or
	// process; otherwise, a queue.
	Act   string
	Limit time.Duration // set if a request may take longer than [MaxWait]
}

// NoBody is the body of routes without one.
type NoBody struct{}

func read[Answer any](pattern, summary, query string) Route[NoBody, Answer] {
	return Route[NoBody, Answer]{Pattern: pattern, Summary: summary, Query: query}
}

func change[Body, Answer any](pattern, summary, act string) Route[Body, Answer] {
	return Route[Body, Answer]{Pattern: pattern, Summary: summary, Act: act}
}

func (r Route[Body, Answer]) within(limit time.Duration) Route[Body, Answer] {
	r.Limit = limit
	return r
}

const selectionQueries = "match attribute reason dead_since dead_until through"

// Routes of /api/v1.
var (
	GetCaller           = read[Caller]("GET /api/v1/caller", "Identity and scopes of the caller.", "")
	GetStatus           = read[Status]("GET /api/v1/status", "Full status of the environment.", "")
	GetEnvironment      = read[Description]("GET /api/v1/environment", "Parts of the environment, with all settings.", "")
	GetExamination      = read[doctor.Examination]("GET /api/v1/doctor", "Problems with settings, machine and servers, with remedies.", "")
	GetConfiguration    = read[Configuration]("GET /api/v1/config", "Effective options, and where to change each.", "")
	GetHealth           = read[health.Report]("GET /api/v1/health", "Status, color and causes.", "")
	GetScale            = read[autoscale.Scale]("GET /api/v1/scale", "The backlog and the desired size.", "")
	GetScaleDecisions   = read[ScaleDecisions]("GET /api/v1/scale/decisions", "The last scaling decisions.", "")
	GetVersions         = read[VersionList]("GET /api/v1/versions", "Versions of the app, newest first.", "latest")
	GetInstances        = read[Instances]("GET /api/v1/instances", "The known instances.", "")
	GetSeries           = read[series.Curves]("GET /api/v1/series", "Time series of the last minutes or hours.", "range")
	GetDeliveries       = read[DeliveryList]("GET /api/v1/deliveries", "The most recent deliveries, newest first.", "limit")
	GetOutcome          = read[Delivery]("GET /api/v1/messages/{id}/outcome", "The latest delivery of a message; can wait for it.", "wait")
	GetExchange         = Route[NoBody, Exchange]{Pattern: "GET /api/v1/messages/{id}/exchange", Summary: "The latest request and its response.", Query: "body", Act: "message read, with request and response"}
	RecordExchanges     = change[RecordRequest, Recording]("POST /api/v1/exchanges", "Record exchanges for a while.", "requests recorded")
	GetEvents           = read[EventList]("GET /api/v1/events", "Events, newest first, or those after an ID.", "after before limit kind match since until")
	GetLogs             = read[LineList]("GET /api/v1/logs", "Log lines, newest first, or those after an ID.", "after before limit process match level until")
	GetQueues           = read[QueueList]("GET /api/v1/queues", "The embedded queues.", "")
	GetQueue            = read[Queue]("GET /api/v1/queues/{name}", "One queue with its attributes.", "")
	CountMessages       = Route[NoBody, Total]{Pattern: "GET /api/v1/queues/{name}/count", Summary: "Number of matching messages.", Query: selectionQueries + " wait body", Act: "bodies searched"}
	GetMessages         = Route[NoBody, MessagePage]{Pattern: "GET /api/v1/queues/{name}/messages", Summary: "One page of messages, oldest first.", Query: selectionQueries + " state after limit body", Act: "bodies read"}
	GetMessage          = Route[NoBody, Message]{Pattern: "GET /api/v1/queues/{name}/messages/{id}", Summary: "One message.", Query: "body", Act: "message read"}
	GetReasons          = read[ReasonList]("GET /api/v1/queues/{name}/reasons", "Failure reasons of the messages, grouped.", "")
	GetTasks            = read[TasksStatus]("GET /api/v1/tasks", "The periodic tasks and their leader.", "")
	GetTaskHistory      = read[RunList]("GET /api/v1/tasks/{name}/history", "The runs of a task, newest first.", "limit")
	GetHistory          = read[RunList]("GET /api/v1/history", "The runs of all tasks, newest first.", "limit")
	CreateQueue         = change[Creation, Created]("POST /api/v1/queues", "Create a queue.", "queue created")
	DeleteQueue         = Route[NoBody, Count]{Pattern: "DELETE /api/v1/queues/{name}", Summary: "Delete a queue with its messages.", Query: "confirm", Act: "queue deleted"}
	SendMessages        = change[SendRequest, SendAnswer]("POST /api/v1/queues/{name}/messages", "Send up to ten messages.", "messages sent")
	ReceiveMessages     = change[ReceiveRequest, ReceivedList]("POST /api/v1/queues/{name}/receive", "Receive messages like a consumer.", "messages received")
	AcknowledgeMessages = change[Receipts, Count]("POST /api/v1/queues/{name}/acknowledge", "Delete received messages.", "messages acknowledged")
	PauseQueue          = change[Reason, Paused]("POST /api/v1/queues/{name}/pause", "Stop receiving from a queue.", "queue paused")
	ResumeQueue         = change[Reason, Paused]("POST /api/v1/queues/{name}/resume", "Resume receiving from a queue.", "queue resumed")
	PurgeQueue          = change[Confirmation, Count]("POST /api/v1/queues/{name}/purge", "Delete all messages in a queue.", "queue purged")
	MoveMessages        = change[MoveRequest, Count]("POST /api/v1/queues/{name}/move", "Move messages to another queue.", "messages moved")
	StartRedrive        = change[RedriveRequest, MoveTask]("POST /api/v1/queues/{name}/redrive", "Start moving dead letters back to their source queues.", "redrive started")
	GetRedrive          = read[MoveTask]("GET /api/v1/queues/{name}/redrive", "The latest move task of a dead-letter queue.", "")
	CancelRedrive       = change[NoBody, MoveTask]("DELETE /api/v1/queues/{name}/redrive", "Cancel the running move task.", "redrive cancelled")
	DeleteMessages      = change[Deletion, Deleted]("POST /api/v1/queues/{name}/delete", "Delete messages, or start deleting dead letters.", "messages deleted")
	DeleteMessage       = change[NoBody, Count]("DELETE /api/v1/queues/{name}/messages/{id}", "Delete one message.", "message deleted")
	RetryMessage        = change[NoBody, Placed]("POST /api/v1/queues/{name}/messages/{id}/retry", "Make one message visible at once.", "message retried")
	DelayMessage        = change[DelayRequest, Placed]("POST /api/v1/queues/{name}/messages/{id}/delay", "Hide one message for a period from now.", "message delayed")
	EditMessage         = change[EditRequest, SendAnswer]("POST /api/v1/queues/{name}/messages/{id}/edit", "Replace a dead letter with an edited message.", "message edited and sent again")
	RunTask             = change[NoBody, TaskRun]("POST /api/v1/tasks/{name}/run", "Enqueue one run of a task.", "task run enqueued")
	PauseTask           = change[Reason, TaskPaused]("POST /api/v1/tasks/{name}/pause", "Pause a task: its runs are skipped.", "task paused")
	ResumeTask          = change[NoBody, TaskPaused]("POST /api/v1/tasks/{name}/resume", "Resume a task.", "task resumed")
	Deploy              = change[DeployRequest, DeployResult]("POST /api/v1/deploy", "Deploy a new version of the app.", "app deployed").within(MaxDeploy)
	AbortDeploy         = change[NoBody, Deployment]("POST /api/v1/deploy/abort", "Abort the deployment in progress.", "deployment aborted").within(MaxDeploy)
	Rollback            = change[RollbackRequest, DeployResult]("POST /api/v1/rollback", "Roll back to a previous version.", "app rolled back").within(MaxDeploy)
	RestartProcess      = change[NoBody, RestartedProcess]("POST /api/v1/processes/{name}/restart", "Restart one process of the app.", "process restarted").within(MaxDeploy)
	PreviewSettings     = change[SettingsChange, SettingsPreview]("POST /api/v1/config/preview", "Preview a change of settings.", "settings change previewed")
	ChangeSettings      = change[SettingsChange, SettingsPreview]("POST /api/v1/config", "Change settings, for all instances or in the settings file.", "settings changed")
	Reload              = change[NoBody, ReloadResult]("POST /api/v1/reload", "Apply changes of the files.", "settings reloaded").within(MaxDeploy)
	PauseAll            = change[Reason, Paused]("POST /api/v1/quiet", "Pause receiving from every queue.", "all queues paused")
	ResumeAll           = change[Reason, Paused]("POST /api/v1/resume", "Resume receiving from every queue.", "all queues resumed")
	Drain               = change[DrainRequest, Drained]("POST /api/v1/drain", "Drain and stop the environment.", "drain requested")
	NewLogin            = change[LoginRequest, LoginLink]("POST /api/v1/login", "Create a login link for one browser.", "login link created")
	GetDocument         = read[any]("GET /api/v1/openapi.json", "This document.", "")
)
