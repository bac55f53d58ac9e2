# syntax=docker/dockerfile:1
# An app and its worker environment in one container. tendril is the first process: it
# starts the app, and at TERM drains and then stops it. In the project's root, type:
#   docker build -f deploy/docker/app.Dockerfile -t reports:1 examples/reports
# For another runtime, change the third line below and install the app's dependencies.
ARG TENDRIL=tendril:0.1.0
FROM ${TENDRIL} AS tendril
FROM python:3.13-slim-bookworm
COPY --from=tendril /usr/local/bin/tendril /usr/local/bin/tendril
COPY --from=tendril /opt/elasticbeanstalk/bin/ /opt/elasticbeanstalk/bin/
# Writable folders: one for tendril, one for the app.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/tendril /var/lib/app
WORKDIR /srv/app
COPY . .
ENV TENDRIL_DATA_DIR=/var/lib/tendril/data \
    REPORTS_DIR=/var/lib/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
VOLUME ["/var/lib/tendril", "/var/lib/app"]
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/usr/local/bin/tendril", "status"]
ENTRYPOINT ["/usr/local/bin/tendril"]
CMD ["up", "/srv/app"]
