# An image of the studio from the wheel in dist/, which `python -m tools.release` makes.
#
#   docker build -t ziggurat .                               processors only
#   docker build -t ziggurat:cuda --build-arg DEVICE=cuda .  NVIDIA GPUs (docker run --gpus all)
FROM python:3.13-slim-bookworm

ARG DEVICE=cpu
ARG EXTRAS=studio,torch,export,serve,samples,backbones,postgresql,gpu

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /opt/ziggurat
COPY constraints.txt dist/*.whl ./

# PyTorch for processors has an index of its own; the one for NVIDIA GPUs is on the usual index, with CUDA's libraries.
RUN case "$DEVICE" in \
        cpu) index=https://download.pytorch.org/whl/cpu ;; \
        cuda) index=https://pypi.org/simple ;; \
        *) echo "DEVICE must be cpu or cuda. Received: $DEVICE" >&2; exit 1 ;; \
    esac; \
    pip install --no-cache-dir --constraint constraints.txt --extra-index-url "$index" "$(echo ./*.whl)[$EXTRAS]"; \
    rm ./*.whl constraints.txt

# The studio and its jobs run as this user; the workspace is the volume.
RUN useradd --create-home --uid 1000 ziggurat && install --directory --owner ziggurat --mode 700 /data
USER 1000
WORKDIR /data
VOLUME /data

ENV ZIGGURAT_WORKSPACE=/data \
    ZIGGURAT_HOST=0.0.0.0 \
    ZIGGURAT_BROWSER=false \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
EXPOSE 5000

HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:5000/login', timeout=8)"]
CMD ["ziggurat", "up"]
