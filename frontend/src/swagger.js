// Starts Swagger UI on its page; it finds the document by an attribute, so that nothing stands inline.
const place = document.getElementById("operations");
window.SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  presets: [window.SwaggerUIBundle.presets.apis],
});
