package api

// RequestIDHeader is the response header with the request's ID, which also appears in log lines and errors.
const RequestIDHeader = "X-Request-Id"
