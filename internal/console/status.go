package console

import (
	"tendril/api"
	"tendril/broker"
)

func newAccount(total broker.Ledger, queues []api.Queue) *api.Account {
	target := api.DeadLetterQueues(queues)
	var dead int64
	for _, q := range queues {
		if target[q.Name] {
			dead += q.Ledger.Live
		}
	}
	dead = min(dead, total.Live) // the queues were counted slightly earlier
	return &api.Account{Sent: total.Sent, Done: total.Done, DeadLettered: dead, Expired: total.Expired, Purged: total.Purged, Live: total.Live - dead}
}
