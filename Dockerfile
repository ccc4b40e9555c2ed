# The image of kdeclare: plans, applies, policies, and audits of fleets that fit into one process. No root, no shell
# history, no compilers. Build it in the root of the repository:
#
#     docker build --tag kdeclare .
#     docker build --tag kdeclare-spark --build-arg EXTRAS=policies,fleet .   # Spark also needs Java, see docs/install.md
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=policies,fleet-local,object-storage
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY kdeclare kdeclare
RUN python -m venv /opt/kdeclare \
 && /opt/kdeclare/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[${EXTRAS}]" \
 && /opt/kdeclare/bin/pip uninstall --yes pip

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="kdeclare" \
      org.opencontainers.image.description="Plan, apply and audit Apache Kafka from manifests in git" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin kdeclare
COPY --from=build /opt/kdeclare /opt/kdeclare
COPY LICENSE NOTICE /licenses/
ENV PATH=/opt/kdeclare/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
# A number, so that Kubernetes can check runAsNonRoot.
USER 10001
WORKDIR /project
ENTRYPOINT ["kdeclare"]
CMD ["--help"]
