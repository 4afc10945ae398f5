# The prompts of a folder, served to many clients over HTTP, or to one over standard input and output.
#
#   docker build --tag prompts .
#   docker run --read-only --cap-drop ALL --publish 127.0.0.1:8000:8000 prompts
#   docker run --read-only --cap-drop ALL --interactive prompts serve recipes
#
# Nothing is written at run time. docs/deploying.md says more.
FROM python:3.13-slim AS build
# What is built is for one encoding: that of the image below.
ENV LANG=C.UTF-8
# The first process of the image: it waits for what children of prompts leave behind, and hands signals on.
RUN apt-get update && apt-get install --yes --no-install-recommends tini
RUN python -m venv /opt/promptkit
COPY pyproject.toml README.md LICENSE /src/
COPY promptkit /src/promptkit
COPY docs/diagnostics.md /src/docs/
RUN /opt/promptkit/bin/pip install --no-cache-dir "/src[http,otel]"

# The last step of the build: errors in the recipes end it.
WORKDIR /srv
COPY recipes recipes
RUN /opt/promptkit/bin/promptkit check recipes

FROM python:3.13-slim
COPY --from=build /usr/bin/tini /usr/bin/
COPY --from=build /opt/promptkit /opt/promptkit
COPY --from=build /srv /srv
ENV LANG=C.UTF-8
ENV PATH=/opt/promptkit/bin:$PATH
WORKDIR /srv
# Nobody: a number, so that Kubernetes can tell that it is not root.
USER 65534:65534
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --start-interval=1s \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8000, timeout=2); c.request('GET', '/readyz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--", "promptkit"]
# Whoever reaches the port may use the prompts: who that is, is up to where it is published.
CMD ["serve", "recipes", "--http", "0.0.0.0:8000", "--no-auth", "--no-watch"]
