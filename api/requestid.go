package api

// RequestIDHeader is the response header with the request's ID, as in log lines and errors.
const RequestIDHeader = "X-Request-Id"
