# syntax=docker/dockerfile:1
# orders and its worker environment in one container: tendril is the first process,
# starts the app, waits until it listens, drains and then stops it. From the app's folder:
#   docker build -t orders:1 .
#   docker run --read-only --tmpfs /tmp --stop-timeout 60 -v orders:/var/lib/tendril orders:1
ARG TENDRIL=tendril:0.1.0
FROM ${TENDRIL} AS tendril
FROM python:3.13-slim-bookworm
COPY --from=tendril /usr/local/bin/tendril /usr/local/bin/tendril
COPY --from=tendril /opt/elasticbeanstalk/bin/ /opt/elasticbeanstalk/bin/
# One folder for tendril, one for the app to write to.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/tendril /var/lib/app
WORKDIR /srv/app
COPY requirements.txt ./
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
ENV TENDRIL_DATA_DIR=/var/lib/tendril/data
VOLUME ["/var/lib/tendril", "/var/lib/app"]
USER 65532:65532
# The drain; a second one stops at once.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/usr/local/bin/tendril", "status"]
ENTRYPOINT ["/usr/local/bin/tendril"]
CMD ["up", "--name=orders", "/srv/app"]
