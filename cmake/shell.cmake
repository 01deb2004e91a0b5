# What shells and man know of the program: written by the program itself after it is linked.
set(MOEHUB_SHELL ${PROJECT_BINARY_DIR}/shell)
file(MAKE_DIRECTORY ${MOEHUB_SHELL})
add_custom_command(TARGET moehub POST_BUILD
  COMMAND moehub completion bash > ${MOEHUB_SHELL}/moehub.bash
  COMMAND moehub completion zsh > ${MOEHUB_SHELL}/_moehub
  COMMAND moehub completion fish > ${MOEHUB_SHELL}/moehub.fish
  COMMAND moehub man > ${MOEHUB_SHELL}/moehub.1
  BYPRODUCTS ${MOEHUB_SHELL}/moehub.bash ${MOEHUB_SHELL}/_moehub ${MOEHUB_SHELL}/moehub.fish
  ${MOEHUB_SHELL}/moehub.1
  VERBATIM)
