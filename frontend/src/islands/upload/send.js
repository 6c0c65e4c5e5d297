// Sends one file; `fetch` cannot tell how far it is, so this is an XMLHttpRequest.
function refused(request) {
  let reason = `the studio answered ${request.status}`;
  try {
    const shape = JSON.parse(request.responseText);
    reason = [shape.rule, shape.advice].filter(Boolean).join(" ") || reason;
  } catch {
    // An answer of something in between, such as a proxy.
  }
  const error = new Error(reason);
  error.isFinal = [401, 403, 404, 507].includes(request.status);
  return error;
}

export function sendFile(address, file, uploadId, { signal, onProgress }) {
  return new Promise((resolve, reject) => {
    const query = new URLSearchParams({ name: file.name });
    if (uploadId) query.set("id", uploadId);
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    const end = (act, value) => {
      signal.removeEventListener("abort", stop);
      act(value);
    };
    request.open("POST", `${address}?${query}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("Accept", "application/json");
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onload = () =>
      request.status === 201 ? end(resolve, JSON.parse(request.responseText)) : end(reject, refused(request));
    request.onerror = () => end(reject, new Error("the studio did not answer, or the file changed or went away"));
    request.onabort = () => end(reject, new Error("cancelled"));
    signal.addEventListener("abort", stop);
    request.send(file.blob);
  });
}
