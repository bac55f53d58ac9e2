"""Receivers of frameworks that are not installed here, as their documentation and sources say that they answer.

rails    the gem active_elastic_job: agent aws-sqsd, message attributes origin and message-digest (HMAC-SHA1 of the body
         with secret_key_base), 403 for a wrong digest; periodic tasks below their route, by X-Aws-Sqsd-Taskname
laravel  the package dusterio/laravel-aws-worker: three headers are needed, and a body of JSON; /worker/schedule
spring   @PostMapping with @RequestHeader and @RequestBody: 400 without a header, 415 for another type
"""
import hashlib
import hmac
import http.server
import json
import os
import sys


def rails(path, headers, body):
    if not headers.get('user-agent', '').startswith('aws-sqsd') or os.environ['PROCESS_ACTIVE_ELASTIC_JOBS'] != 'true':
        return 404
    if path.startswith('/periodic_tasks'):
        return 200 if headers.get('x-aws-sqsd-taskname') == 'CleanupJob' else 500
    if headers.get('x-aws-sqsd-attr-origin') != 'AEJ':
        return 404
    digest = hmac.new(os.environ['SECRET_KEY_BASE'].encode(), body, hashlib.sha1).hexdigest()
    if headers.get('x-aws-sqsd-attr-message-digest') != digest:
        return 403
    return 200 if json.loads(body)['job_class'] else 500


def laravel(path, headers, body):
    if os.environ['REGISTER_WORKER_ROUTES'] != 'true':
        return 404
    if path == '/worker/schedule':
        return 200
    if path != '/worker/queue':
        return 404
    needed = ('x-aws-sqsd-queue', 'x-aws-sqsd-msgid', 'x-aws-sqsd-receive-count')
    try:
        return 200 if all(name in headers for name in needed) and json.loads(body) is not None else 500
    except ValueError:
        return 500


def spring(path, headers, body):
    wanted = {'/messages': ('x-aws-sqsd-msgid', 'x-aws-sqsd-receive-count'),
              '/tasks/report': ('x-aws-sqsd-taskname', 'x-aws-sqsd-scheduled-at')}.get(path)
    if wanted is None:
        return 404
    if any(name not in headers for name in wanted):
        return 400
    if path == '/tasks/report':
        return 204
    if headers.get('content-type') != 'application/json':
        return 415
    try:
        return 200 if set(json.loads(body)) <= {'order'} else 400
    except ValueError:
        return 400


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status = globals()[sys.argv[1]](self.path, headers, body)
        print('seen', json.dumps({'path': self.path, 'body': body.decode(), 'headers': headers}), flush=True)
        self.send_response(status)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
