// Package periodic works out when tasks are due and enqueues them.
package periodic
