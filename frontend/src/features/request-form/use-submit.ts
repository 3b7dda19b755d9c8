/** Sending the request: once, however often the button is pressed, and with the server's words at their steps. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { errorMessage, fieldErrors, isNetworkError, isSessionExpired } from "@/lib/errors";
import { reads } from "@/lib/query-keys";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/errors";
import "@/messages/en/requestForm";
import type { Answers, Step } from "./answers";
import { submitRequest } from "./api";
import type { SentRequest } from "./storage";

export interface Complaint {
  field: string;
  message: string;
  step: Step;
}

const stepOf: Record<string, Step> = {
  category_id: "category",
  nonprofits: "nonprofits",
  first_name: "info",
  last_name: "info",
  email: "info",
  phone: "info",
  address: "info",
  city: "info",
  state: "info",
  postal_code: "info",
  description: "details",
  amount: "details",
  contact_consent: "review",
};

/** What the server found wrong with single answers. */
export const complaintsOf = (error: unknown): Complaint[] =>
  Object.entries(fieldErrors(error)).map(([field, message]) => ({ field, message, step: stepOf[field] ?? "review" }));

export interface UseSubmit {
  signedIn: boolean;
  onSent: (sent: SentRequest) => void;
}

export function useSubmit({ signedIn, onSent }: UseSubmit) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: (answers: Answers) => submitRequest(answers, signedIn),
    onSuccess: (result, answers) => {
      toast({
        title: t("requestForm.sentTitle"),
        description: t("requestForm.sentToastBody", { id: result.request_number }),
      });
      void queryClient.invalidateQueries({ queryKey: reads.myRequests });
      onSent({
        number: result.request_number,
        email: result.email,
        nonprofits: answers.nonprofits.map(({ name }) => name),
        at: result.submitted_at,
        ...(!signedIn && answers.account ? { account: answers.account.fullName || answers.account.email } : {}),
      });
    },
    onError: (error) => {
      if (complaintsOf(error).length > 0 || isSessionExpired(error)) return; // told in the page
      toast({
        variant: "destructive",
        title: t("requestForm.submitErrorTitle"),
        description: isNetworkError(error) ? t("errors.network") : errorMessage(error, "requestForm.submitFailed"),
      });
    },
  });
}
