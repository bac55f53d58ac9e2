package broker

import "database/sql/driver"

// books are the counters of one queue: its ledger, the next free place, and
// the place up to which all is purged.
type books struct {
	next, floor                        int64
	sent, done, deadLettered           int64
	movedIn, movedOut, expired, purged int64
}

// live is the number of messages in the queue, by the ledger's equation.
func (k *books) live() int64 {
	return k.sent + k.movedIn - k.done - k.deadLettered - k.movedOut - k.expired - k.purged
}

// add adds the account of another queue; the places are not part of it.
func (k *books) add(o *books) {
	k.sent += o.sent
	k.done += o.done
	k.deadLettered += o.deadLettered
	k.movedIn += o.movedIn
	k.movedOut += o.movedOut
	k.expired += o.expired
	k.purged += o.purged
}

func writeBooks(c *conn, number int64, k *books) error {
	_, err := c.exec(`INSERT OR REPLACE INTO counters
		(queue, next, floor, sent, done, dead_lettered, moved_in, moved_out, expired, purged)
		VALUES (?,?,?,?,?,?,?,?,?,?)`,
		number, k.next, k.floor, k.sent, k.done, k.deadLettered, k.movedIn, k.movedOut, k.expired, k.purged)
	return err
}

// readBooks returns the counters of every queue by number, row 0 included.
func readBooks(c *conn) (map[int64]books, error) {
	all := map[int64]books{}
	err := c.query(func(row []driver.Value) error {
		n := func(i int) int64 { v, _ := row[i].(int64); return v }
		all[n(0)] = books{
			next: n(1), floor: n(2), sent: n(3), done: n(4), deadLettered: n(5),
			movedIn: n(6), movedOut: n(7), expired: n(8), purged: n(9),
		}
		return nil
	}, `SELECT queue, next, floor, sent, done, dead_lettered, moved_in, moved_out, expired, purged FROM counters`)
	return all, err
}
