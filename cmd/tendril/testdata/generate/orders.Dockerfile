# syntax=docker/dockerfile:1
# orders and its worker environment in one container. tendril is the first process: it
# starts the app, and at TERM drains and then stops it. In the app's folder, type:
#   docker build -t orders:1 .
#   docker run --read-only --tmpfs /tmp --stop-timeout 60 -v orders:/var/lib/tendril orders:1
ARG TENDRIL=tendril:0.1.0
FROM ${TENDRIL} AS tendril
FROM python:3.13-slim-bookworm
COPY --from=tendril /usr/local/bin/tendril /usr/local/bin/tendril
COPY --from=tendril /opt/elasticbeanstalk/bin/ /opt/elasticbeanstalk/bin/
# Writable folders: one for tendril, one for the app.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/tendril /var/lib/app
WORKDIR /srv/app
COPY requirements.txt ./
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
ENV TENDRIL_DATA_DIR=/var/lib/tendril/data
VOLUME ["/var/lib/tendril", "/var/lib/app"]
USER 65532:65532
# TERM drains; a second TERM stops immediately.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/usr/local/bin/tendril", "status"]
ENTRYPOINT ["/usr/local/bin/tendril"]
CMD ["up", "--name=orders", "/srv/app"]
