/* Opens a model and plans a session: 0 when this library has all that the model needs, otherwise the error's words. */
#include <oxbow/oxbow.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  oxb_error error = OXB_ERROR_INIT;
  oxb_model* model = NULL;
  oxb_plan plan = OXB_PLAN_INIT;
  oxb_status status = oxb_model_open_file(argv[1], NULL, &model, &error);
  if (status == OXB_OK) status = oxb_session_plan(model, NULL, &plan, &error);
  if (status == OXB_OK) {
    printf("%zu bytes\n", plan.arena_bytes);
  } else {
    fprintf(stderr, "%s: %s\n", oxb_status_name(status), error.text);
  }
  oxb_model_close(model);
  return status == OXB_OK ? 0 : 1;
}
