/** Parts of a function's last argument that are loaded only for functions that may use them. */
export { tensors } from "../../core/tensor_operations.ts";
export { imageTools } from "../media/image.ts";
