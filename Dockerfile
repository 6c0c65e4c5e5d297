# An image of the studio from the wheel in dist/, which `python -m tools.release` makes.
#
#   docker build -t ziggurat .                          NVIDIA GPUs (docker run --gpus all) or processors
#   docker build -t ziggurat --build-arg INDEX=URL .    a smaller one for processors; URL: PyTorch's index with such builds
FROM python:3.13-slim-bookworm

ARG INDEX
ARG EXTRAS=studio,torch,export,serve,samples,backbones,postgresql,gpu

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /opt/ziggurat
COPY constraints.txt dist/*.whl ./

# PyTorch's usual build brings the libraries of CUDA; its builds for processors alone have an index of their own.
RUN pip install --no-cache-dir --constraint constraints.txt ${INDEX:+--extra-index-url "$INDEX"} \
        "$(echo ./*.whl)[$EXTRAS]"; \
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
