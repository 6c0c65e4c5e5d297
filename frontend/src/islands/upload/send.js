// Sends files; `fetch` cannot tell how far it is, so this is an XMLHttpRequest.
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

function post(address, query, body, type, { signal, onProgress }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    const end = (act, value) => {
      signal.removeEventListener("abort", stop);
      act(value);
    };
    request.open("POST", `${address}?${query}`);
    if (type) request.setRequestHeader("Content-Type", type);
    request.setRequestHeader("Accept", "application/json");
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onload = () =>
      request.status === 201 ? end(resolve, JSON.parse(request.responseText)) : end(reject, refused(request));
    request.onerror = () =>
      end(reject, Object.assign(new Error("the studio did not answer, or the file changed or was deleted"), { isLost: true }));
    request.onabort = () => end(reject, new Error("canceled"));
    signal.addEventListener("abort", stop);
    request.send(body);
  });
}

export function sendFile(address, file, uploadId, options) {
  const query = new URLSearchParams({ name: file.name });
  if (uploadId) query.set("id", uploadId);
  return post(address, query, file.blob, "application/octet-stream", options);
}

// Many small files in one request: one for each would take longer than the files do.
export function sendFiles(address, files, uploadId, options) {
  const form = new FormData();
  for (const file of files) form.append("files", file.blob, file.name);
  return post(`${address}/files`, new URLSearchParams({ id: uploadId }), form, "", options);
}
