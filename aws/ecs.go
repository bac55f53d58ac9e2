package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tendril/queue"
)

// TaskProtection is how long the protection of an ECS task lasts, unless it is
// set again before: 1 minute to 48 hours are possible. What a task that was
// killed leaves behind ends by itself.
const TaskProtection = time.Hour

// maxAgentAnswer bounds what is read of an answer of the container agent.
const maxAgentAnswer = 64 << 10

// Task is the ECS task that this process runs in, as its container agent knows
// it. Its methods are safe for concurrent use.
type Task struct {
	state  string // the URL of the protection
	client *http.Client
}

// NewTask returns this task. agent is the URL of the container agent, as
// ECS_AGENT_URI has it; an invalid URL is an error.
func NewTask(agent string) (*Task, error) {
	u, err := url.Parse(agent)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("ECS_AGENT_URI %q is no URL: Amazon ECS sets it in its containers; take it out of the "+
			"environment elsewhere", agent)
	}
	// Its own transport without kept connections: it is used twice in an hour.
	return &Task{state: strings.TrimSuffix(agent, "/") + "/task-protection/v1/state",
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}, nil
}

// Protect keeps the task from being stopped by scale-in and by deployments of
// its service, for [TaskProtection] from now on, or no longer. The caller
// bounds it with ctx. Source: the Amazon ECS developer guide, "Amazon ECS task
// scale-in protection endpoint"; the agent asks UpdateTaskProtection of the
// API, which the task's role has to allow.
func (t *Task) Protect(ctx context.Context, on bool) error {
	wanted := struct {
		ProtectionEnabled bool
		ExpiresInMinutes  int `json:",omitempty"`
	}{ProtectionEnabled: on}
	if on {
		wanted.ExpiresInMinutes = int(TaskProtection / time.Minute)
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, t.state, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(req)
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			return cause
		}
		return agentError(queue.CodeUnreachable, "it does not answer: "+firstLine(err.Error()))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAgentAnswer))
	if err != nil {
		return agentError(queue.CodeUnreachable, "its answer broke off")
	}
	return readProtection(resp.StatusCode, text, on)
}

// readProtection understands the agent's answer: what the task's protection is
// now, or a failure of the task's, also with status 200, or an error of the call.
func readProtection(status int, text []byte, on bool) error {
	var answer struct {
		Protection *struct{ ProtectionEnabled bool }
		Failure    *struct{ Reason, Detail string }
		Error      *struct{ Code, Message string }
	}
	unread := json.Unmarshal(text, &answer)
	switch {
	case answer.Failure != nil:
		return agentError(queue.CodeInvalidParameterValue,
			strings.TrimSuffix(answer.Failure.Reason+": "+answer.Failure.Detail, ": "))
	case answer.Error != nil && strings.HasPrefix(answer.Error.Code, "AccessDenied"):
		return agentError(queue.CodeAccessDenied, "the task's role needs ecs:UpdateTaskProtection: "+answer.Error.Message)
	case answer.Error != nil:
		return agentError(queue.CodeUnreachable, strings.TrimSuffix(answer.Error.Code+": "+answer.Error.Message, ": "))
	case status != http.StatusOK || unread != nil || answer.Protection == nil || answer.Protection.ProtectionEnabled != on:
		return agentError(queue.CodeUnreachable,
			fmt.Sprintf("status %d, and no word that the protection is set as it should be", status))
	}
	return nil
}

func agentError(code, text string) error {
	return &queue.Error{Code: code, Message: "the container agent of Amazon ECS: " + text}
}
