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

const selectionQueries = "match attribute reason dead_since dead_until through"

// Routes of /api/v1.
var (
	GetCaller         = Route[NoBody, Caller]{Pattern: "GET /api/v1/caller", Summary: "Identity and scopes of the caller."}
	GetStatus         = Route[NoBody, Status]{Pattern: "GET /api/v1/status", Summary: "Full status of the environment."}
	GetEnvironment    = Route[NoBody, Description]{Pattern: "GET /api/v1/environment", Summary: "Parts of the environment, with all settings."}
	GetExamination    = Route[NoBody, doctor.Examination]{Pattern: "GET /api/v1/doctor", Summary: "Problems with settings, machine and servers, with remedies."}
	GetConfiguration  = Route[NoBody, Configuration]{Pattern: "GET /api/v1/config", Summary: "Effective options, and where to change each."}
	GetHealth         = Route[NoBody, health.Report]{Pattern: "GET /api/v1/health", Summary: "Status, color and causes."}
	GetScale          = Route[NoBody, autoscale.Scale]{Pattern: "GET /api/v1/scale", Summary: "The backlog and the desired size."}
	GetScaleDecisions = Route[NoBody, ScaleDecisions]{Pattern: "GET /api/v1/scale/decisions", Summary: "The last scaling decisions."}
	GetVersions       = Route[NoBody, VersionList]{Pattern: "GET /api/v1/versions", Summary: "Versions of the app, newest first.", Query: "latest"}
	GetInstances      = Route[NoBody, Instances]{Pattern: "GET /api/v1/instances", Summary: "The known instances."}
	GetSeries         = Route[NoBody, series.Curves]{Pattern: "GET /api/v1/series", Summary: "Time series of the last minutes or hours.", Query: "range"}
	GetDeliveries     = Route[NoBody, DeliveryList]{Pattern: "GET /api/v1/deliveries", Summary: "The most recent deliveries, newest first.", Query: "limit"}
	GetOutcome        = Route[NoBody, Delivery]{Pattern: "GET /api/v1/messages/{id}/outcome", Summary: "The latest delivery of a message; can wait for it.", Query: "wait"}
	GetExchange       = Route[NoBody, Exchange]{Pattern: "GET /api/v1/messages/{id}/exchange", Summary: "The latest request and its response.", Query: "body",
		Act: "message read, with request and response"}
	RecordExchanges = Route[RecordRequest, Recording]{Pattern: "POST /api/v1/exchanges", Summary: "Record exchanges for a while.",
		Act: "requests recorded"}
	GetEvents     = Route[NoBody, EventList]{Pattern: "GET /api/v1/events", Summary: "Events, newest first, or those after an ID.", Query: "after before limit kind match since until"}
	GetLogs       = Route[NoBody, LineList]{Pattern: "GET /api/v1/logs", Summary: "Log lines, newest first, or those after an ID.", Query: "after before limit process match level until"}
	GetQueues     = Route[NoBody, QueueList]{Pattern: "GET /api/v1/queues", Summary: "The embedded queues."}
	GetQueue      = Route[NoBody, Queue]{Pattern: "GET /api/v1/queues/{name}", Summary: "One queue with its attributes."}
	CountMessages = Route[NoBody, Total]{Pattern: "GET /api/v1/queues/{name}/count", Summary: "Number of matching messages.", Query: selectionQueries + " wait body",
		Act: "bodies searched"}
	GetMessages = Route[NoBody, MessagePage]{Pattern: "GET /api/v1/queues/{name}/messages", Summary: "One page of messages, oldest first.", Query: selectionQueries + " state after limit body",
		Act: "bodies read"}
	GetMessage = Route[NoBody, Message]{Pattern: "GET /api/v1/queues/{name}/messages/{id}", Summary: "One message.", Query: "body",
		Act: "message read"}
	GetReasons     = Route[NoBody, ReasonList]{Pattern: "GET /api/v1/queues/{name}/reasons", Summary: "Failure reasons of the messages, grouped."}
	GetTasks       = Route[NoBody, TasksStatus]{Pattern: "GET /api/v1/tasks", Summary: "The periodic tasks and their leader."}
	GetTaskHistory = Route[NoBody, RunList]{Pattern: "GET /api/v1/tasks/{name}/history", Summary: "The runs of a task, newest first.", Query: "limit"}
	GetHistory     = Route[NoBody, RunList]{Pattern: "GET /api/v1/history", Summary: "The runs of all tasks, newest first.", Query: "limit"}
	CreateQueue    = Route[Creation, Created]{Pattern: "POST /api/v1/queues", Summary: "Create a queue.",
		Act: "queue created"}
	DeleteQueue = Route[NoBody, Count]{Pattern: "DELETE /api/v1/queues/{name}", Summary: "Delete a queue with its messages.", Query: "confirm",
		Act: "queue deleted"}
	SendMessages = Route[SendRequest, SendAnswer]{Pattern: "POST /api/v1/queues/{name}/messages", Summary: "Send up to ten messages.",
		Act: "messages sent"}
	ReceiveMessages = Route[ReceiveRequest, ReceivedList]{Pattern: "POST /api/v1/queues/{name}/receive", Summary: "Receive messages like a consumer.",
		Act: "messages received"}
	AcknowledgeMessages = Route[Receipts, Count]{Pattern: "POST /api/v1/queues/{name}/acknowledge", Summary: "Delete received messages.",
		Act: "messages acknowledged"}
	PauseQueue = Route[Reason, Paused]{Pattern: "POST /api/v1/queues/{name}/pause", Summary: "Stop receiving from a queue.",
		Act: "queue paused"}
	ResumeQueue = Route[Reason, Paused]{Pattern: "POST /api/v1/queues/{name}/resume", Summary: "Resume receiving from a queue.",
		Act: "queue resumed"}
	PurgeQueue = Route[Confirmation, Count]{Pattern: "POST /api/v1/queues/{name}/purge", Summary: "Delete all messages in a queue.",
		Act: "queue purged"}
	MoveMessages = Route[MoveRequest, Count]{Pattern: "POST /api/v1/queues/{name}/move", Summary: "Move messages to another queue.",
		Act: "messages moved"}
	StartRedrive = Route[RedriveRequest, MoveTask]{Pattern: "POST /api/v1/queues/{name}/redrive", Summary: "Start moving dead letters back to their source queues.",
		Act: "redrive started"}
	GetRedrive    = Route[NoBody, MoveTask]{Pattern: "GET /api/v1/queues/{name}/redrive", Summary: "The latest move task of a dead-letter queue."}
	CancelRedrive = Route[NoBody, MoveTask]{Pattern: "DELETE /api/v1/queues/{name}/redrive", Summary: "Cancel the running move task.",
		Act: "redrive cancelled"}
	DeleteMessages = Route[Deletion, Deleted]{Pattern: "POST /api/v1/queues/{name}/delete", Summary: "Delete messages, or start deleting dead letters.",
		Act: "messages deleted"}
	DeleteMessage = Route[NoBody, Count]{Pattern: "DELETE /api/v1/queues/{name}/messages/{id}", Summary: "Delete one message.",
		Act: "message deleted"}
	RetryMessage = Route[NoBody, Placed]{Pattern: "POST /api/v1/queues/{name}/messages/{id}/retry", Summary: "Make one message visible at once.",
		Act: "message retried"}
	DelayMessage = Route[DelayRequest, Placed]{Pattern: "POST /api/v1/queues/{name}/messages/{id}/delay", Summary: "Hide one message for a period from now.",
		Act: "message delayed"}
	EditMessage = Route[EditRequest, SendAnswer]{Pattern: "POST /api/v1/queues/{name}/messages/{id}/edit", Summary: "Replace a dead letter with an edited message.",
		Act: "message edited and sent again"}
	RunTask = Route[NoBody, TaskRun]{Pattern: "POST /api/v1/tasks/{name}/run", Summary: "Enqueue one run of a task.",
		Act: "task run enqueued"}
	PauseTask = Route[Reason, TaskPaused]{Pattern: "POST /api/v1/tasks/{name}/pause", Summary: "Pause a task: its runs are skipped.",
		Act: "task paused"}
	ResumeTask = Route[NoBody, TaskPaused]{Pattern: "POST /api/v1/tasks/{name}/resume", Summary: "Resume a task.",
		Act: "task resumed"}
	Deploy = Route[DeployRequest, DeployResult]{Pattern: "POST /api/v1/deploy", Summary: "Deploy a new version of the app.",
		Act: "app deployed", Limit: MaxDeploy}
	AbortDeploy = Route[NoBody, Deployment]{Pattern: "POST /api/v1/deploy/abort", Summary: "Abort the deployment in progress.",
		Act: "deployment aborted", Limit: MaxDeploy}
	Rollback = Route[RollbackRequest, DeployResult]{Pattern: "POST /api/v1/rollback", Summary: "Roll back to a previous version.",
		Act: "app rolled back", Limit: MaxDeploy}
	RestartProcess = Route[NoBody, RestartedProcess]{Pattern: "POST /api/v1/processes/{name}/restart", Summary: "Restart one process of the app.",
		Act: "process restarted", Limit: MaxDeploy}
	PreviewSettings = Route[SettingsChange, SettingsPreview]{Pattern: "POST /api/v1/config/preview", Summary: "Preview a change of settings.",
		Act: "settings change previewed"}
	ChangeSettings = Route[SettingsChange, SettingsPreview]{Pattern: "POST /api/v1/config", Summary: "Change settings, for all instances or in the settings file.",
		Act: "settings changed"}
	Reload = Route[NoBody, ReloadResult]{Pattern: "POST /api/v1/reload", Summary: "Apply changes of the files.",
		Act: "settings reloaded", Limit: MaxDeploy}
	PauseAll = Route[Reason, Paused]{Pattern: "POST /api/v1/quiet", Summary: "Pause receiving from every queue.",
		Act: "all queues paused"}
	ResumeAll = Route[Reason, Paused]{Pattern: "POST /api/v1/resume", Summary: "Resume receiving from every queue.",
		Act: "all queues resumed"}
	Drain = Route[DrainRequest, Drained]{Pattern: "POST /api/v1/drain", Summary: "Drain and stop the environment.",
		Act: "drain requested"}
	NewLogin = Route[LoginRequest, LoginLink]{Pattern: "POST /api/v1/login", Summary: "Create a login link for one browser.",
		Act: "login link created"}
	GetDocument = Route[NoBody, any]{Pattern: "GET /api/v1/openapi.json", Summary: "This document."}
)
