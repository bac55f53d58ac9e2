package sqsapi

import "context"

// action is one SQS action, independent of the protocol that carries it: a
// function from a typed request to a typed response. A protocol decodes into
// what request returns, passes it to run, and encodes what run returns.
type action struct {
	// request returns a pointer to an empty request of the action's type.
	request func() any
	// run takes a filled request of that type. A nil response means that the
	// action has no output. Its errors are [*queue.Error], except for
	// failures inside the process.
	run func(ctx context.Context, h *Handler, c caller, request any) (response any, err error)
}

// typed makes an action of a handler's method.
func typed[Request, Response any](f func(*Handler, context.Context, caller, *Request) (*Response, error)) action {
	return action{
		request: func() any { return new(Request) },
		run: func(ctx context.Context, h *Handler, c caller, request any) (any, error) {
			response, err := f(h, ctx, c, request.(*Request))
			if err != nil || response == nil {
				return nil, err
			}
			return response, nil
		},
	}
}

// void makes an action without output of a handler's method.
func void[Request any](f func(*Handler, context.Context, *Request) error) action {
	return action{
		request: func() any { return new(Request) },
		run: func(ctx context.Context, h *Handler, _ caller, request any) (any, error) {
			return nil, f(h, ctx, request.(*Request))
		},
	}
}

// actions returns the actions that are served, by name.
func actions() map[string]action {
	return map[string]action{
		"ChangeMessageVisibility":      void((*Handler).changeMessageVisibility),
		"ChangeMessageVisibilityBatch": typed((*Handler).changeMessageVisibilityBatch),
		"CreateQueue":                  typed((*Handler).createQueue),
		"DeleteMessage":                void((*Handler).deleteMessage),
		"DeleteMessageBatch":           typed((*Handler).deleteMessageBatch),
		"DeleteQueue":                  void((*Handler).deleteQueue),
		"GetQueueAttributes":           typed((*Handler).getQueueAttributes),
		"GetQueueUrl":                  typed((*Handler).getQueueURL),
		"ListDeadLetterSourceQueues":   typed((*Handler).listDeadLetterSourceQueues),
		"ListQueueTags":                typed((*Handler).listQueueTags),
		"ListQueues":                   typed((*Handler).listQueues),
		"PurgeQueue":                   void((*Handler).purgeQueue),
		"ReceiveMessage":               typed((*Handler).receiveMessage),
		"SendMessage":                  typed((*Handler).sendMessage),
		"SendMessageBatch":             typed((*Handler).sendMessageBatch),
		"SetQueueAttributes":           void((*Handler).setQueueAttributes),
		"TagQueue":                     void((*Handler).tagQueue),
		"UntagQueue":                   void((*Handler).untagQueue),
	}
}

// counter is a response that knows how many messages it is about.
type counter interface{ messages() int }
