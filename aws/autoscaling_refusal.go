package aws

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tendril/queue"
)

func (g *Group) explain(ctx context.Context, action string, err error) error {
	return g.scaling.explain(ctx, action, "Auto Scaling group "+g.name, err)
}

// explain turns any error of a call into a [*queue.Error] that says about what
// it was and what to do. The cancelling of the caller's own context stays what
// it is.
func (a *AutoScaling) explain(ctx context.Context, action, what string, err error) error {
	refused := answer(err)
	if cause := ctx.Err(); cause != nil && refused == nil {
		if errors.Is(cause, context.Canceled) {
			return cause
		}
		return &queue.Error{Code: queue.CodeUnreachable, Err: cause,
			Message: fmt.Sprintf("%s (%s): %s did not answer in time; check the network, the region and "+
				"AWS_ENDPOINT_URL_AUTO_SCALING", action, what, a.host)}
	}
	if refused == nil {
		return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
			"%s (%s): %s did not answer: %s; check the network, the region, the credentials and AWS_ENDPOINT_URL_AUTO_SCALING",
			action, what, a.host, firstLine(plain(err).Error()))}
	}
	code, message := scalingCode(refused), fmt.Sprintf("%s (%s): %s: %s", action, what, a.host, refused.Error())
	switch {
	case refused.foreign():
		message = fmt.Sprintf("%s (%s): %s", action, what,
			refused.foreignAnswer(a.host, "Auto Scaling", "AWS_ENDPOINT_URL_AUTO_SCALING"))
	case code == queue.CodeResourceNotFound:
		message += "; check the name, the account and the region"
	case code == queue.CodeUnreachable, code == queue.CodeRequestThrottled:
		message += "; it is tried again"
	case code == queue.CodeAccessDenied:
		message = fmt.Sprintf("%s refused %s on %s: %s; allow these credentials autoscaling:%s", a.host, action, what,
			refused.Error(), action)
	}
	return &queue.Error{Code: code, Message: message, Err: refused}
}

// scalingCode names the kinds of refusal that Auto Scaling has and SQS has not.
// What does not exist is a ValidationError to it like everything else.
func scalingCode(refused *refusal) string {
	switch refused.shape {
	case "ValidationError":
		for _, words := range []string{"not found", "does not exist", "No active Lifecycle Action"} {
			if strings.Contains(strings.ToLower(refused.message), strings.ToLower(words)) {
				return queue.CodeResourceNotFound
			}
		}
		return queue.CodeInvalidParameterValue
	case "ResourceContention", "ScalingActivityInProgress", "LimitExceeded":
		return queue.CodeRequestThrottled
	}
	return refused.code()
}
